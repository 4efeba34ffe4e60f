"""How far minutes are folded after a pass, and when a mark is taken."""

from __future__ import annotations

from datetime import UTC, datetime

from tenure._rules.stats import MINUTE, RollupProgress, moved

START = datetime(2030, 1, 1, tzinfo=UTC)
NOTHING_NEW = {"folded": None, "again": None}


def at(final: int, marked: int, folded: int) -> RollupProgress:
    return RollupProgress(START + final * MINUTE, START + marked * MINUTE, START + folded * MINUTE)


def test_a_folded_minute_is_marked_when_nothing_waits_for_another_mark() -> None:
    after, again = moved(
        at(5, 5, 5), closed_to=START + 6 * MINUTE, folded=START + 5 * MINUTE, whole=True, again=None
    )
    assert (after, again) == (at(5, 6, 6), True)


def test_while_a_mark_waits_minutes_are_folded_and_the_mark_stays() -> None:
    after, again = moved(
        at(5, 6, 8),
        closed_to=START + 9 * MINUTE,
        folded=START + 8 * MINUTE,
        whole=False,
        again=None,
    )
    assert (after, again) == (at(5, 6, 9), False)


def test_marked_minutes_are_folded_again_one_by_one_and_then_final() -> None:
    closed = START + 9 * MINUTE
    after, again = moved(
        at(5, 8, 9), closed_to=closed, folded=None, whole=True, again=START + 5 * MINUTE
    )
    assert (after, again) == (at(6, 8, 9), False)
    after, again = moved(after, closed_to=closed, whole=True, **NOTHING_NEW)
    assert (after, again) == (at(8, 9, 9), True)


def test_with_nothing_to_fold_it_moves_with_the_clock_and_marks_once_per_minute() -> None:
    closed = START + 7 * MINUTE
    after, again = moved(at(5, 6, 6), closed_to=closed, whole=True, **NOTHING_NEW)
    assert (after, again) == (at(6, 7, 7), True)
    after, again = moved(after, closed_to=closed, whole=True, **NOTHING_NEW)
    assert (after, again) == (at(7, 7, 7), False)
    assert moved(after, closed_to=closed, whole=True, **NOTHING_NEW) == (after, False)
