"""The life cycle of one job: what may follow what, as the lease protocol tells it.

Written from the protocol's text, not from the code that it judges. The attempts of a job name
every change of its state but a cancel in the queue, in their order; so the life cycle gives a
few courses at most, each a chain of steps with a place between any two.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from proof.checker.events import JobHistory

ENDED = frozenset({"completed", "failed", "cancelled"})
STATES = ENDED | {"queued", "running"}
# Ends of a running period that end the job, whatever else.
FOR_GOOD = {"completed": "completed", "cancelled": "cancelled", "revoked": "cancelled"}
# Ends that another than the holder or its parent brings about: they raise the token.
FORCED = frozenset({"expired", "unbegun", "excused", "lost", "revoked"})
# Losses by the counters that they raise, or may raise (rule 8).
OWN = frozenset({"died", "stood_still", "lost"})
SHARED = frozenset({"expired", "crashed", "stood_still"})
DEATHS = frozenset({"died", "stood_still", "expired", "crashed", "unbegun"})
LOST = OWN | SHARED | DEATHS
_EITHER_WAY = ("stood_still", "lost")
# Ends that give the attempt back.
UNCHARGED = frozenset({"released", "snoozed", "excused"}) | DEATHS
FAILURES = frozenset({"failed", "timed_out"})
OUTCOMES = FOR_GOOD.keys() | FORCED | UNCHARGED | FAILURES
# With `max_losses` 0 these end the job if its handler had begun, which no row says of them.
_MAY_HAVE_BEGUN = frozenset({"released", "excused"})

_QUEUED = frozenset({"queued"})
_FAILED = frozenset({"failed"})
_CANCELLED = frozenset({"cancelled"})
_EITHER = _QUEUED | _FAILED


class Place(NamedTuple):
    """Where a job is between two steps: its state, the tokens that a read may show there, and
    whether a cancel there is a request that the rest of the course respects."""

    state: str
    low: int
    high: int
    respects: bool = False


class Step(NamedTuple):
    """A change of state: `create`, `claim`, `end` or `cancel`, with the token and the outcome."""

    name: str
    token: int = 0
    outcome: str = ""


class Course(NamedTuple):
    """One way to the final state. `places` has one more than `steps`; `by_request` where a cancel
    must have been requested in the last running period."""

    steps: list[Step]
    places: list[Place]
    by_request: bool = False


def leads_to(outcome: str, *, cancel_requested: bool, at_cap: bool | None) -> frozenset[str]:
    """The states in which a job may be after a period that ended so; `asked` to cancel or not.
    `at_cap` is None where the history does not tell."""
    if outcome in FOR_GOOD:
        return frozenset({FOR_GOOD[outcome]})
    if cancel_requested:
        return _CANCELLED
    if at_cap is None:
        return _EITHER
    if at_cap:
        return _FAILED
    return _EITHER if outcome in FAILURES else _QUEUED


def capped(history: JobHistory) -> Iterator[bool | None]:
    """Of each attempt, whether the job was at a cap when it ended; None where it may have been."""
    outcomes = [outcome for _, outcome in history.final.attempts]
    for number, outcome in enumerate(outcomes, start=1):
        before = outcomes[:number]
        charged = outcome not in UNCHARGED
        if charged and sum(one not in UNCHARGED for one in before) >= history.max_attempts:
            yield True
        elif outcome in LOST:
            yield _is_poison(history, before)
        else:
            yield None if not history.max_losses and outcome in _MAY_HAVE_BEGUN else False


def _is_poison(history: JobHistory, outcomes: list[str]) -> bool | None:
    """Whether the last of these ends, a loss, brought the job to a cap."""
    last = outcomes[-1]
    if not history.max_losses and last != "unbegun":
        return True
    if sum(outcome in DEATHS for outcome in outcomes) >= history.max_deaths:
        return True
    counters = (OWN, history.max_losses), (SHARED, history.max_worker_losses)
    counts = [(*bounds(outcomes, kinds), cap) for kinds, cap in counters if last in kinds]
    if counts and all(low >= cap for low, _, cap in counts):
        return True
    return None if any(high >= cap for _, high, cap in counts) else False


def bounds(outcomes: Iterable[str], kinds: frozenset[str]) -> tuple[int, int]:
    """How often at least and at most these ends raised the counter of these kinds."""
    found = Counter(outcome for outcome in outcomes if outcome in kinds)
    return found.total() - sum(found[one] for one in _EITHER_WAY), found.total()


def after(state: str, token: int, outcome: str) -> Place:
    """The place behind the end of a period."""
    if outcome == "completed":
        return Place(state, token, token)
    return Place(state, token + 1 if outcome in FORCED else token, token + 1)


def courses(history: JobHistory) -> list[Course]:
    """Every course that ends in the final state; none if the life cycle has no such end."""
    attempts, state = history.final.attempts, history.final.state
    steps = [Step("create")]
    places = [Place("absent", 0, 0), Place("queued", 0, 0)]
    if not attempts:
        return [_cancelled_at_the_end(steps, places)] if state == "cancelled" else []
    at_cap: bool | None = False
    for number, ((token, outcome), at_cap) in enumerate(
        zip(attempts, capped(history), strict=True), start=1
    ):
        steps += (Step("claim", token), Step("end", token, outcome))
        places.append(Place("running", token, token))
        if number < len(attempts):
            if "queued" not in leads_to(outcome, cancel_requested=False, at_cap=at_cap):
                return []
            places.append(after("queued", token, outcome))
    token, outcome = attempts[-1]
    found = []
    without_request = leads_to(outcome, cancel_requested=False, at_cap=at_cap)
    request = state in leads_to(outcome, cancel_requested=True, at_cap=at_cap)
    if state in without_request or request:
        running = places[-1]._replace(respects=request)
        ways = [*places[:-1], running, after(state, token, outcome)]
        found.append(Course(steps, ways, by_request=state not in without_request))
    if state == "cancelled" and "queued" in without_request:
        found.append(_cancelled_at_the_end(steps, [*places, after("queued", token, outcome)]))
    return found


def _cancelled_at_the_end(steps: list[Step], places: list[Place]) -> Course:
    return Course([*steps, Step("cancel")], [*places, places[-1]._replace(state="cancelled")])
