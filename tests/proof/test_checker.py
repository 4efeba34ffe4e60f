"""The offline checker must accept every sound history, and reject what it is there to reject."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from itertools import count, permutations
from random import Random

import pytest

from proof.checker import order
from proof.checker.check import check, check_all
from proof.checker.events import Event, Final, JobHistory
from proof.checker.lifecycle import Course, Place, Step
from proof.checker.whole import conserved, margins
from tests.proof.corruptions import KINDS
from tests.proof.histories import history

MANY = 10_000
SINGLE = JobHistory(
    1,
    (
        Event("enqueue", 0.0, 1.0, answer="ok"),
        Event("began", 2.0, 2.0, 5),
        Event("returned", 3.0, math.inf, 5),
    ),
    Final("completed", 5, ((5, "completed"),), 5, ()),
)


@pytest.fixture(scope="module")
def sound() -> list[JobHistory]:
    return [history(seed) for seed in range(MANY)]


def test_sound_histories_are_accepted(sound: list[JobHistory]) -> None:
    for one in sound:
        assert check(one) == [], f"seed {one.job_id}"


def test_corrupted_histories_are_rejected_for_the_right_reason(sound: list[JobHistory]) -> None:
    kinds: Counter[str] = Counter(dict.fromkeys(KINDS, 0))
    seeds = count()
    while kinds.total() < MANY:
        seed = next(seeds)
        one = sound[seed] if seed < MANY else history(seed)
        rng = Random(f"corruption {seed}")  # noqa: S311 - to be repeated
        for kind, _ in sorted(kinds.items(), key=lambda item: item[1]):
            invariant, corrupt = KINDS[kind]
            if wrong := corrupt(one, rng):
                found = {violation.invariant for violation in check(wrong)}
                assert invariant in found, f"seed {seed}, {kind}: {found or 'accepted'}"
                kinds[kind] += 1
                break
    assert len(kinds) >= 15
    assert min(kinds.values()) >= 200, kinds


def retried(*events: Event, outcome: str = "expired", **final: object) -> JobHistory:
    """A job whose first period, token 1, did not complete it; token 3 did."""
    usual = Final("completed", 3, ((1, outcome), (3, "completed")), 3, ())
    return JobHistory(
        1,
        (
            Event("enqueue", 0.0, 1.0, answer="ok"),
            Event("began", 5.0, 5.0, 3),
            Event("returned", 6.0, math.inf, 3),
            *events,
        ),
        replace(usual, **final),  # type: ignore[arg-type]  # named by their field
    )


def invariants(one: JobHistory) -> set[str]:
    return {violation.invariant for violation in check(one)}


def test_a_sleeper_may_begin_and_end_after_its_lease_was_lost() -> None:
    stale = [Event("began", 8.0, 8.0, 1), Event("effect", 8.5, 8.5, 1)]
    assert not check(retried(*stale, Event("returned", 9.0, math.inf, 1)))
    assert not check(retried(*stale, Event("commit", 8.6, 9.0, 1, "refused")))
    assert invariants(retried(*stale, Event("commit", 8.6, 9.0, 1, "ok"))) == {"I2"}


def test_a_commit_without_an_answer_may_hold_later_or_never() -> None:
    unknown = Event("commit", 4.0, math.inf, 1, "unknown")
    lost = retried(unknown)
    held = JobHistory(
        1,
        (*SINGLE.events[:2], replace(unknown, token=5)),
        replace(SINGLE.final, result=None, entries=(5,), writes=True),
    )
    assert not check(lost)
    assert not check(held)
    # The handler tried again, and was told that the lease is over: it was its own doing.
    again = Event("commit", 6.0, 7.0, 5, "refused")
    assert not check(replace(held, events=(*held.events, again)))
    # The completion began after a reader had seen it completed.
    early = Event("seen", 2.5, 3.5, 5, "completed")
    assert invariants(replace(held, events=(*held.events, early))) == {"I2"}


def test_a_refusal_by_the_worker_itself_says_nothing_of_the_store() -> None:
    refused = Event("commit", 2.5, 2.6, 5, "refused")
    assert not check(replace(SINGLE, events=(*SINGLE.events, refused)))


def test_an_unknown_cancel_may_be_a_request_or_an_end_in_the_queue() -> None:
    cancel = Event("cancel", 2.0, math.inf, answer="unknown")
    final = Final("cancelled", 2, ((1, "expired"),), None, ())
    requested = Event("enqueue", 0.0, 1.0, answer="ok")
    one = JobHistory(1, (requested, Event("began", 1.5, 1.5, 1), cancel), final)
    assert not check(one)
    # Seen in the queue after its loss: then it can only have been ended there.
    assert not check(replace(one, events=(*one.events, Event("seen", 3.0, 3.1, 2, "queued"))))
    # Seen cancelled before anybody had asked.
    early = Event("seen", 1.6, 1.7, 0, "cancelled")
    assert invariants(replace(one, events=(*one.events, early))) == {"I2"}


def test_unacknowledged_job_may_be_gone() -> None:
    unknown = Event("enqueue", 0.0, math.inf, answer="unknown")
    gone = Final("gone", 0, (), None, ())
    assert not check(JobHistory(1, (unknown,), gone))
    assert invariants(JobHistory(1, (unknown, SINGLE.events[0]), gone)) == {"I1"}


def test_a_period_may_be_erased_by_a_failover_and_by_nothing_else() -> None:
    token = 2 << 40
    events = (
        SINGLE.events[0],
        Event("began", 1.2, 1.2, (1 << 40) + 4),
        Event("began", 2.0, 2.0, token),
        Event("returned", 3.0, math.inf, token),
    )
    one = JobHistory(1, events, Final("completed", token, ((token, "completed"),), token, ()))
    assert not check(one)
    same = replace(one, events=(events[0], replace(events[1], token=token + 4), *events[2:]))
    assert invariants(same) == {"I8"}


def test_two_handlers_may_run_at_once_but_not_both_hold_the_lease() -> None:
    first = [Event("began", 2.0, 2.0, 1), Event("raised", 4.0, math.inf, 1)]
    assert not check(retried(*first, outcome="failed"))
    late = [first[0], Event("raised", 5.5, math.inf, 1)]
    assert not check(retried(*late))
    assert invariants(retried(*late, outcome="failed")) == {"I3"}


def test_what_it_does_not_know_it_refuses_to_judge() -> None:
    for wrong in (
        Event("vanished", 1.0, 1.0, 5),
        Event("commit", 1.0, 2.0, 5, "perhaps"),
        Event("cancel", 1.0, 2.0, 0, "perhaps"),
        Event("enqueue", 1.0, 2.0, 0, "perhaps"),
        Event("seen", 1.0, 2.0, 0, "perhaps"),
        Event("effect", 2.0, 1.0, 5),
    ):
        with pytest.raises(ValueError, match=wrong.what):
            check(replace(SINGLE, events=(*SINGLE.events, wrong)))


def test_many_are_checked_one_by_one() -> None:
    gone = replace(SINGLE, job_id=7, final=Final("gone", 0, (), None, ()))
    assert [violation.job_id for violation in check_all([SINGLE, gone, SINGLE])] == [7]


def test_the_search_finds_what_trying_every_order_finds() -> None:
    rng = Random("orders")  # noqa: S311 - to be repeated
    verdicts: Counter[bool] = Counter()
    for number in range(600):
        course, bounds, reads = puzzle(rng)
        expected = any_order(course, bounds, reads)
        found = order._search(course, bounds, sorted(reads, key=lambda e: e.until)) is None
        assert found == expected, f"puzzle {number}: {course} {bounds} {reads}"
        verdicts[found] += 1
    assert min(verdicts[True], verdicts[False]) > 100, verdicts


def puzzle(rng: Random) -> tuple[Course, list[order.Bounds], list[Event]]:
    """A few steps between states, with times that often collide, and a few reads."""
    steps = [Step("step", number) for number in range(rng.randint(1, 4))]
    places = [Place(rng.choice(("queued", "running")), 1, 1) for _ in range(len(steps) + 1)]
    bounds = []
    for _ in steps:
        low, high = rng.choice((-math.inf, rng.randint(0, 6))), rng.choice((math.inf, 5, 7))
        bounds.append(order.Bounds(low, high))
    reads = []
    for _ in range(rng.randint(1, 6 - len(steps))):
        since = rng.randint(0, 8)
        until = since + rng.randint(0, 3)
        reads.append(Event("seen", since, until, 0, rng.choice(("queued", "running"))))
    return Course(steps, places), bounds, reads


def any_order(course: Course, bounds: list[order.Bounds], reads: list[Event]) -> bool:
    """Try all of them."""
    spans = [*bounds, *((read.since, read.until) for read in reads)]
    steps = len(bounds)
    for way in permutations(range(len(spans))):
        if [one for one in way if one < steps] != list(range(steps)):
            continue
        in_time = all(
            spans[later][1] >= spans[earlier][0]
            for place, earlier in enumerate(way)
            for later in way[place:]
        )
        passed = [sum(one < steps for one in way[:place]) for place in range(len(way))]
        if in_time and all(
            one < steps or course.places[made].state == reads[one - steps].answer
            for one, made in zip(way, passed, strict=True)
        ):
            return True
    return False


def test_jobs_are_conserved_over_a_run() -> None:
    states = {"completed": 90, "failed": 5, "cancelled": 3}
    assert not conserved(enqueued=100, revived=1, states=states, discarded=2, pruned=1)
    [violation] = conserved(enqueued=100, revived=1, states=states, discarded=2)
    assert violation.invariant == "I10"
    assert not conserved(enqueued=96, unknown=2, states=states)
    assert conserved(enqueued=96, unknown=1, states=states)


def test_effects_after_the_lease_are_reported_with_the_worst_margin() -> None:
    ends = {(1, 5): 10.0, (2, 7): 10.0}
    worst, none = margins([(1, 5, 8.0), (2, 7, 9.5)], ends)
    assert (worst, none) == (0.5, [])
    worst, found = margins([(1, 5, 10.25), (2, 8, 1.0)], ends)
    assert worst == -0.25
    assert [(one.invariant, one.job_id) for one in found] == [("I5", 1), ("I5", 2)]
    assert margins([], ends) == (math.inf, [])
