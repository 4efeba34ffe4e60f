"""Ways to corrupt a sound history, each with the invariant that it breaks.

Each answers None where it would leave the history possible.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from proof.checker.events import Event, Final
from proof.checker.lifecycle import DEATHS as LOST
from proof.checker.lifecycle import FAILURES, FORCED
from tests.proof.corrupting import (
    acknowledged,
    attempt,
    causes,
    completer,
    end,
    final_of,
    of,
    offers,
    one_timeline,
    requested_at,
    swapped,
    with_events,
    without,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from proof.checker.events import JobHistory

    Corruption = Callable[[JobHistory, Random], JobHistory | None]

KINDS: dict[str, tuple[str, Corruption]] = {}


def breaks(invariant: str) -> Callable[[Corruption], Corruption]:
    """Register a corruption."""

    def register(corrupt: Corruption) -> Corruption:
        KINDS[corrupt.__name__] = (invariant, corrupt)
        return corrupt

    return register


@breaks("I2")
def second_result(history: JobHistory, rng: Random) -> JobHistory | None:
    attempts = history.final.attempts
    if completer(history) is None or len(attempts) < 2:
        return None
    number = rng.randrange(len(attempts) - 1)
    return attempt(history, number, attempts[number][0], "completed")


@breaks("I2")
def result_by_an_old_token(history: JobHistory, rng: Random) -> JobHistory | None:
    attempts = history.final.attempts
    if completer(history) is None or len(attempts) < 2:
        return None
    return final_of(history, result=rng.choice(attempts[:-1])[0])


@breaks("I1")
def acknowledged_and_gone(history: JobHistory, rng: Random) -> JobHistory | None:
    if acknowledged(history) == math.inf:
        return None
    return replace(history, final=Final("gone", 0, (), None, (), history.final.writes))


@breaks("I1")
def cancelled_without_request(history: JobHistory, rng: Random) -> JobHistory | None:
    final = history.final
    if final.state != "cancelled":
        return None
    if final.attempts and final.attempts[-1][1] in {"cancelled", "revoked"}:
        return None
    return without(history, lambda e: e.what == "cancel")


@breaks("I1")
def ran_before_its_request(history: JobHistory, rng: Random) -> JobHistory | None:
    began = [e for e in history.events if e.what == "began"]
    if not began:
        return None
    one, at = rng.choice(began), requested_at(history) - 1.0
    return swapped(history, one, replace(one, since=at, until=at))


@breaks("I4")
def entry_doubled(history: JobHistory, rng: Random) -> JobHistory | None:
    entries = history.final.entries
    return final_of(history, entries=entries * 2) if entries else None


@breaks("I4")
def entry_by_a_lost_lease(history: JobHistory, rng: Random) -> JobHistory | None:
    final = history.final
    lost = [token for token, outcome in final.attempts if outcome in LOST]
    if not lost:
        return None
    keep = final.entries if rng.random() < 0.5 else ()
    return final_of(history, entries=(*keep, rng.choice(lost)))


@breaks("I4")
def entry_missing(history: JobHistory, rng: Random) -> JobHistory | None:
    return final_of(history, entries=()) if history.final.entries else None


@breaks("I8")
def token_reset(history: JobHistory, rng: Random) -> JobHistory | None:
    attempts = history.final.attempts
    if len(attempts) < 2:
        return None
    number = rng.randrange(1, len(attempts))
    return attempt(history, number, attempts[rng.randrange(number)][0], attempts[number][1])


@breaks("I8")
def token_reused(history: JobHistory, rng: Random) -> JobHistory | None:
    began = [e for e in history.events if e.what == "began"]
    if not began:
        return None
    at = end(history)
    return with_events(history, replace(rng.choice(began), since=at, until=at))


@breaks("I8")
def token_never_claimed(history: JobHistory, rng: Random) -> JobHistory | None:
    at = rng.uniform(requested_at(history), end(history))
    token = history.final.token + rng.randint(1, 3)
    if history.final.state == "gone":
        return None
    return with_events(history, Event("began", at, at, token))


@breaks("I8")
def token_not_raised_by_force(history: JobHistory, rng: Random) -> JobHistory | None:
    attempts = history.final.attempts
    if not attempts or attempts[-1][1] not in FORCED:
        return None
    return final_of(history, token=attempts[-1][0])


@breaks("I8")
def token_seen_going_back(history: JobHistory, rng: Random) -> JobHistory | None:
    attempts = history.final.attempts
    if len(attempts) < 2 or not one_timeline(history):
        return None
    later = rng.randrange(1, len(attempts))
    earlier, at = rng.randrange(later), end(history)
    return with_events(
        history,
        Event("seen", 0.0, at, attempts[later][0], "running"),
        Event("seen", at + 1, at + 2, attempts[earlier][0], "running"),
    )


@breaks("I2")
def commit_held_but_lost(history: JobHistory, rng: Random) -> JobHistory | None:
    tokens = [token for token, outcome in history.final.attempts if outcome != "completed"]
    if not tokens:
        return None
    token = rng.choice(tokens)
    if commits := of(history, "commit", token):
        one = rng.choice(commits)
        until = min(one.until, one.since + 1.0)
        return swapped(history, one, replace(one, until=until, answer="ok"))
    at = end(history)
    return with_events(history, Event("commit", at, at + 0.1, token, "ok"))


@breaks("I2")
def refused_commit_applied(history: JobHistory, rng: Random) -> JobHistory | None:
    token = completer(history)
    found = offers(history, token) if token is not None else []
    if len(found) != 1 or found[0].answer != "ok":
        return None
    return swapped(history, found[0], replace(found[0], answer="refused"))


@breaks("I2")
def commit_held_twice(history: JobHistory, rng: Random) -> JobHistory | None:
    held = [e for e in history.events if e.what == "commit" and e.answer == "ok"]
    if not held:
        return None
    at = end(history)
    return with_events(history, replace(held[0], since=at, until=at + 0.1))


@breaks("I2")
def completed_without_a_holder(history: JobHistory, rng: Random) -> JobHistory | None:
    token = completer(history)
    if token is None:
        return None
    found = offers(history, token)
    return without(history, lambda e: any(e is one for one in found))


@breaks("I2")
def failed_without_a_holder(history: JobHistory, rng: Random) -> JobHistory | None:
    failed = [
        token
        for token, outcome in history.final.attempts
        if outcome == "failed" and of(history, "began", token)
    ]
    if not failed:
        return None
    found = causes(history, rng.choice(failed))
    return without(history, lambda e: any(e is one for one in found))


@breaks("I2")
def failed_though_it_returned(history: JobHistory, rng: Random) -> JobHistory | None:
    failed = [
        token
        for token, outcome in history.final.attempts
        if outcome == "failed" and of(history, "raised", token) and causes(history, token)
    ]
    if not failed or history.unstorable:
        return None
    token = rng.choice(failed)
    found = causes(history, token)
    storable = without(history, lambda e: any(e is one for one in found))
    return with_events(storable, replace(found[0], what="returned", until=math.inf, answer=""))


@breaks("I2")
def overtaken_before_its_commit(history: JobHistory, rng: Random) -> JobHistory | None:
    """A later token began before the accepted commit of the earlier one was begun."""
    token = completer(history)
    found = offers(history, token) if token is not None else []
    if token is None or len(found) != 1 or found[0].answer != "ok":
        return None
    at, later = found[0].since - 0.001, token + 1
    attempts = (*history.final.attempts, (later, "expired"))
    overtaken = with_events(history, Event("began", at, at, later))
    return final_of(overtaken, attempts=attempts, token=later + 1)


@breaks("I3")
def began_before_the_failure_before(history: JobHistory, rng: Random) -> JobHistory | None:
    """A later token began before the handler of an earlier one had failed."""
    attempts = history.final.attempts
    for number, (token, outcome) in enumerate(attempts[:-1]):
        later = of(history, "began", attempts[number + 1][0])
        began, found = of(history, "began", token), causes(history, token)
        if outcome == "failed" and began and found and later:
            at = (began[0].since + min(e.since for e in found)) / 2
            return swapped(history, later[0], replace(later[0], since=at, until=at))
    return None


@breaks("I6")
def stuck(history: JobHistory, rng: Random) -> JobHistory | None:
    final = history.final
    if final.state == "gone":
        return None
    kept = tuple(one for one in final.attempts if one[1] != "completed")
    state = rng.choice(("queued", "running"))
    return final_of(history, state=state, attempts=kept, result=None, entries=())


@breaks("I9")
def too_many_losses(history: JobHistory, rng: Random) -> JobHistory | None:
    died = [outcome for _, outcome in history.final.attempts[:-1] if outcome == "died"]
    return replace(history, max_losses=len(died)) if died else None


@breaks("I9")
def too_many_worker_losses(history: JobHistory, rng: Random) -> JobHistory | None:
    outcomes = [outcome for _, outcome in history.final.attempts[:-1]]
    shared = [outcome for outcome in outcomes if outcome in {"expired", "crashed"}]
    return replace(history, max_worker_losses=len(shared)) if shared else None


@breaks("I9")
def too_many_deaths(history: JobHistory, rng: Random) -> JobHistory | None:
    outcomes = [outcome for _, outcome in history.final.attempts[:-1]]
    deaths = [outcome for outcome in outcomes if outcome in LOST]
    return replace(history, max_deaths=len(deaths)) if deaths else None


@breaks("I9")
def poison_though_no_loss_counts(history: JobHistory, rng: Random) -> JobHistory | None:
    """Its last lease ended with the server's own start, or gave no sign that it had begun."""
    attempts = history.final.attempts
    if history.final.state != "failed" or attempts[-1][1] != "expired":
        return None
    return attempt(history, -1, attempts[-1][0], rng.choice(("excused", "unbegun")))


@breaks("I9")
def lost_though_it_may_not_be(history: JobHistory, rng: Random) -> JobHistory | None:
    """A job that fails on its first loss ran again after one."""
    lost = [outcome for _, outcome in history.final.attempts[:-1] if outcome in LOST - {"unbegun"}]
    return replace(history, max_losses=0) if lost else None


@breaks("I9")
def too_many_attempts(history: JobHistory, rng: Random) -> JobHistory | None:
    outcomes = [outcome for _, outcome in history.final.attempts]
    charged = [number for number, outcome in enumerate(outcomes) if outcome in FAILURES]
    if not charged or charged[-1] == len(outcomes) - 1:
        return None
    return replace(history, max_attempts=len(charged))


@breaks("I9")
def failed_for_another_reason(history: JobHistory, rng: Random) -> JobHistory | None:
    other = {"attempts": "poison", "poison": "attempts", "given up": "lost"}
    reason = history.final.reason
    return final_of(history, reason=other[reason]) if reason else None


@breaks("I9")
def failed_below_its_caps(history: JobHistory, rng: Random) -> JobHistory | None:
    final = history.final
    if final.state != "failed" or final.attempts[-1][1] not in LOST:
        return None
    return replace(history, max_losses=99, max_worker_losses=99)


@breaks("I2")
def cancelled_after_completed(history: JobHistory, rng: Random) -> JobHistory | None:
    if completer(history) is None:
        return None
    at = end(history)
    return with_events(history, Event("cancel", at, at + 0.1, answer="ended"))


@breaks("I2")
def cancelled_twice(history: JobHistory, rng: Random) -> JobHistory | None:
    ended = [e for e in history.events if e.what == "cancel" and e.answer == "ended"]
    if not ended:
        return None
    at = end(history)
    return with_events(history, replace(ended[0], since=at, until=at + 0.1))


@breaks("I2")
def cancel_had_nothing_to_end(history: JobHistory, rng: Random) -> JobHistory | None:
    """While it was live."""
    token = completer(history)
    if token is None or not one_timeline(history):
        return None
    low, high = acknowledged(history), min(e.since for e in offers(history, token))
    if not low < high:
        return None
    since, until = low + (high - low) / 3, low + (high - low) / 2
    return with_events(history, Event("cancel", since, until, answer="nothing"))


@breaks("I2")
def request_ignored(history: JobHistory, rng: Random) -> JobHistory | None:
    if history.final.state != "failed":
        return None
    at = rng.uniform(requested_at(history), end(history))
    return with_events(history, Event("cancel", at, at + 0.1, answer="requested"))


@breaks("I2")
def revoked_and_ran_again(history: JobHistory, rng: Random) -> JobHistory | None:
    attempts = history.final.attempts
    if len(attempts) < 2:
        return None
    number = rng.randrange(len(attempts) - 1)
    return attempt(history, number, attempts[number][0], "revoked")


@breaks("I2")
def seen_completed_then_running(history: JobHistory, rng: Random) -> JobHistory | None:
    token = completer(history)
    if token is None or not one_timeline(history):
        return None
    at, shown = end(history), rng.choice((0, token))
    return with_events(
        history,
        Event("seen", at, at + 0.1, token, "completed"),
        Event("seen", at + 0.2, at + 0.3, shown, "running"),
    )


@breaks("I2")
def seen_completed_too_early(history: JobHistory, rng: Random) -> JobHistory | None:
    token = completer(history)
    if token is None or not one_timeline(history):
        return None
    at = min(e.since for e in offers(history, token)) - 0.001
    return with_events(history, Event("seen", at - 0.1, at, rng.choice((0, token)), "completed"))


@breaks("I2")
def seen_running_after_its_commit(history: JobHistory, rng: Random) -> JobHistory | None:
    held = [e for e in history.events if e.what == "commit" and e.answer == "ok"]
    if not held or not one_timeline(history):
        return None
    at = held[0].until + 0.1
    return with_events(history, Event("seen", at, at + 0.1, held[0].token, "running"))
