"""The judge of innocence sees each corruption of a sound history, and nothing in the sound one."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from proof.justice import judge
from proof.justice.judge import Claim, Fate, Innocent, Strike
from proof.justice.ledger import BEAT, DYING, END, FAILED, START, Mark

LEASE = 3.0
PARENT, CHILD, HANDLER = 10, 20, 30
# Job 1 fails once by itself, is interrupted by the crash at 5.0, and completes. Job 2 is the pill.
INNOCENTS = [Innocent(1, seconds=2.0, fails=1)]
MARKS = [
    Mark(START, 1, 1, 1, CHILD, PARENT, 3.0),
    Mark(FAILED, 1, 1, 1, CHILD, PARENT, 3.1),
    Mark(START, 1, 2, 2, CHILD, PARENT, 4.0),
    Mark(BEAT, 1, 2, 2, CHILD, PARENT, 4.9),
    Mark(START, 2, 1, 1, CHILD, PARENT, 4.5),
    Mark(DYING, 2, 1, 1, CHILD, PARENT, 5.0),
    Mark(START, 1, 3, 2, HANDLER, CHILD + 1, 6.0),
    Mark(END, 1, 3, 2, HANDLER, CHILD + 1, 8.0),
    *(Mark(DYING, 2, 2 + n, 1, 40 + n, CHILD + 1, 6.0 + n) for n in range(3)),
]
FATES = {
    1: Fate(1, "completed", "worker_done", attempt=2, losses=0, worker_losses=1, deaths=1),
    2: Fate(2, "failed", "poison", attempt=0, losses=3, worker_losses=1, deaths=4),
}


def verdict(marks: list[Mark], fates: dict[int, Fate]) -> list[str]:
    """All that the judge says about the history above."""
    waits = judge.waits(INNOCENTS, marks, judge.crashes(marks))
    return [
        *judge.failed(INNOCENTS, fates),
        *judge.unfinished([1, 2], fates),
        *judge.charged(INNOCENTS, marks),
        *judge.unproven(INNOCENTS, fates, marks),
        *judge.overlaps(marks),
        *judge.after_end(marks, {(1, 2): 7.0, (1, 3): 9.0}),
        *judge.late(waits, LEASE, cores=2),
        *(str(wait) for wait in waits if wait.kind == judge.UNEXPLAINED),
        *judge.not_poison([2], fates),
        *judge.not_exactly(3, [2], *judge.own_deaths(marks, {PARENT})),
    ]


def test_sound_history_is_accepted() -> None:
    assert verdict(MARKS, FATES) == []


@pytest.mark.parametrize(
    "fates",
    [
        FATES | {1: replace(FATES[1], state="failed", reason="lost")},
        FATES | {1: replace(FATES[1], state="failed", reason="poison")},
        FATES | {1: replace(FATES[1], state="cancelled", reason=None)},
        FATES | {1: replace(FATES[1], state="queued", reason=None)},
        FATES | {2: replace(FATES[2], state="completed", reason="worker_done")},
        FATES | {2: replace(FATES[2], reason="lost")},
        {2: FATES[2]},
        {1: FATES[1]},
    ],
)
def test_corrupted_rows_are_rejected(fates: dict[int, Fate]) -> None:
    assert verdict(MARKS, fates)


def _changed(index: int, **change: object) -> list[Mark]:
    return [*MARKS[:index], replace(MARKS[index], **change), *MARKS[index + 1 :]]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "marks",
    [
        pytest.param(_changed(2, attempt=3), id="an attempt charged before the crash"),
        pytest.param(_changed(6, attempt=3), id="an attempt charged by the crash"),
        pytest.param(_changed(7, kind=BEAT), id="completed without an end"),
        pytest.param(_changed(6, at=9.5), id="started later than the bound"),
        pytest.param(_changed(3, at=6.5), id="at work side by side with the next period"),
        pytest.param(_changed(7, at=9.5), id="at work after the lease's end"),
        pytest.param(_changed(5, pid=99), id="interrupted by nothing that was done"),
        pytest.param(MARKS[:-1], id="poison after two deaths"),
        pytest.param([*MARKS, replace(MARKS[-1], token=9)], id="poison after four deaths"),
        pytest.param(_changed(-1, parent=PARENT), id="a shared death counted as its own"),
    ],
)
def test_corrupted_ledgers_are_rejected(marks: list[Mark]) -> None:
    assert verdict(marks, FATES)


def test_death_together_with_the_child_may_count_or_not() -> None:
    shared = Mark(DYING, 7, 1, 1, CHILD + 1, PARENT, 7.9)
    for ledger in ([*MARKS, shared], [*MARKS, shared, replace(MARKS[-1], token=9)]):
        own = judge.own_deaths(ledger, {PARENT})
        assert judge.not_exactly(3, [2], *own) == []
    own = judge.own_deaths([*MARKS[:-2], shared], {PARENT})
    assert judge.not_exactly(3, [2], *own)


def test_death_in_a_process_that_ran_another_job_may_count_or_not() -> None:
    used = [
        Mark(START, 8, 1, 1, 50, CHILD + 1, 5.5),
        Mark(DYING, 2, 9, 1, 50, CHILD + 1, 5.8),
    ]
    assert judge.not_exactly(3, [2], *judge.own_deaths([*MARKS, *used], {PARENT})) == []
    assert judge.not_exactly(3, [2], *judge.own_deaths([*MARKS, used[1]], {PARENT}))


def test_unsettled_failure_run_again_is_not_a_charge() -> None:
    again = [replace(mark, token=mark.token + 10, at=mark.at + 0.5) for mark in MARKS[:2]]
    assert judge.charged(INNOCENTS, [*MARKS, *again]) == []


def test_wait_counts_from_the_end_of_an_outage() -> None:
    outage = Strike("away", 5.0, 12.0)
    marks = [*MARKS[2:4], replace(MARKS[6], at=14.0), replace(MARKS[7], at=16.0)]
    [wait] = judge.waits(INNOCENTS, marks, [outage, Strike("away", 13.0, 20.0)])
    assert (wait.kind, wait.seconds, wait.rank) == ("away", 2.0, 1)


def test_job_struck_again_before_it_began_waits_from_there() -> None:
    strikes = [Strike("killed", 5.0, 5.0), Strike("killed", 8.0, 8.0, frozenset({77}))]
    marks = [*MARKS[2:4], replace(MARKS[6], token=9, at=10.0)]
    for pid, token, seconds in ((77, 3, 2.0), (78, 3, 5.0), (77, 9, 5.0)):
        claim = Claim(1, token, pid, at=7.0, until=9.0)
        wait, *_ = judge.waits(INNOCENTS, marks, strikes, [claim])
        assert wait.seconds == seconds


def test_job_that_never_runs_again_waits_forever() -> None:
    [wait] = judge.waits(INNOCENTS, MARKS[2:4], [Strike("away", 5.0, 6.0)])
    assert math.isinf(wait.seconds)
    assert judge.late([wait], LEASE, cores=2)


def test_later_suspects_may_wait_longer() -> None:
    innocents = [Innocent(n, seconds=2.0) for n in range(1, 9)]
    marks = [
        Mark(START, n, token, 1, CHILD, PARENT, at)
        for n in range(1, 9)
        for token, at in ((1, 4.0), (2, 5.0 + n))
    ]
    waits = judge.waits(innocents, marks, [Strike("crash", 5.0, 5.0, frozenset({CHILD}))])
    assert sorted(wait.rank for wait in waits if not math.isinf(wait.seconds)) == [*range(1, 9)]
    assert waits[7].bound(LEASE, cores=2) == pytest.approx(1.3 * LEASE + 8 / 4 * 2.0)


def test_begun_twice_is_seen() -> None:
    assert judge.begun_twice([1], MARKS[:2]) == []
    assert judge.begun_twice([1], MARKS)


def test_longest_gap_includes_both_ends_of_the_watch() -> None:
    assert judge.longest_gap([1.0, 2.0, 2.5], since=0.0, until=3.0) == 1.0
    assert judge.longest_gap([1.0, 2.0], since=0.0, until=9.0) == 7.0
    assert judge.longest_gap([4.0], since=0.0, until=4.0) == 4.0
