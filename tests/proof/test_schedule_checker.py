"""The checker of `just prove schedules` must reject what it is there to reject."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from proof.schedules.checker import Record, Run, check
from proof.schedules.targets import Pause, Stretch, Target
from tenure._model.schedule import Missed, Overlap, Policy, Timing

if TYPE_CHECKING:
    from proof.schedules.checker import Findings

BEGIN = datetime(2026, 11, 15, 12, 0, 0, 500_000, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)
TICKS = [BEGIN.replace(minute=n, microsecond=0) for n in range(1, 11)]
END = TICKS[-1] + SECOND
NAME = "every-minute"


def target(policy: Policy | None = None, pauses: tuple[Pause, ...] = ()) -> Target:
    stretch = Stretch(Timing(every=MINUTE), policy or Policy(), BEGIN, END)
    return Target(NAME, [stretch], pauses)


def fired(tick: datetime, job_id: int, after: timedelta = SECOND) -> tuple[Run, Record]:
    at = tick + after
    return (
        Run(job_id, NAME, tick, at, at),
        Record(NAME, tick, "fired", "late" if after > MINUTE else None, job_id, at),
    )


def skipped(tick: datetime, reason: str, after: timedelta) -> Record:
    return Record(NAME, tick, "skipped", reason, None, tick + after)


def sound() -> tuple[list[Run], list[Record]]:
    pairs = [fired(tick, number) for number, tick in enumerate(TICKS)]
    return [run for run, _ in pairs], [row for _, row in pairs]


def judged(what: Target, runs: list[Run], records: list[Record]) -> Findings:
    return check([what], runs, records, slack=timedelta(0))


def test_what_matches_is_clean() -> None:
    found = judged(target(), *sound())
    assert found.clean
    assert (found.targets, found.fired, found.checked) == (10, 10, 10)


def test_a_doubled_run_is_rejected_even_if_the_tick_row_knows_of_one_alone() -> None:
    runs, records = sound()
    runs.append(replace(runs[3], job_id=99))
    assert len(judged(target(), runs, records).doubled) == 1


def test_a_lost_run_is_rejected_whatever_the_tick_row_says() -> None:
    runs, records = sound()
    assert len(judged(target(), runs[1:], records).absent) == 1
    assert len(judged(target(), runs[1:], records[1:]).absent) == 1


@pytest.mark.parametrize("tick", [TICKS[0] + SECOND, BEGIN - MINUTE, END + timedelta(days=1)])
def test_run_without_a_tick_is_rejected(tick: datetime) -> None:
    runs, records = sound()
    runs.append(Run(99, NAME, tick, END, END))
    assert len(judged(target(), runs, records).extra) == 1


def test_a_run_of_a_schedule_that_never_was_is_rejected() -> None:
    runs, records = sound()
    runs.append(replace(runs[0], job_id=99, schedule="another"))
    runs.append(replace(runs[0], job_id=98, tick_at=None))
    assert len(judged(target(), runs, records).extra) == 2


def test_a_run_without_its_tick_row_is_rejected_and_so_is_one_that_names_another_job() -> None:
    runs, records = sound()
    assert len(judged(target(), runs, records[1:]).unrecorded) == 1
    records[0] = replace(records[0], job_id=99)
    assert len(judged(target(), runs, records).unrecorded) == 1


def test_a_run_whose_tick_row_says_skipped_is_rejected() -> None:
    runs, records = sound()
    records[0] = replace(records[0], outcome="skipped", reason="missed", job_id=None)
    assert len(judged(target(), runs, records).unrecorded) == 1


@pytest.mark.parametrize("reason", ["missed", "paused", "overlap", "because"])
def test_a_skipped_tick_that_was_not_missed_nor_paused_nor_overlapped_is_rejected(
    reason: str,
) -> None:
    runs, records = sound()
    records[4] = skipped(TICKS[4], reason, SECOND)
    del runs[4]
    assert len(judged(target(), runs, records).wrong) == 1


def test_a_tick_that_was_recorded_before_its_time_is_rejected() -> None:
    runs, records = sound()
    records[4] = replace(records[4], recorded_at=TICKS[4] - SECOND)
    assert len(judged(target(), runs, records).wrong) == 1


def test_of_missed_ticks_the_latest_alone_may_make_a_job() -> None:
    """No scheduler ran from the third minute until the tenth had just begun."""
    back = TICKS[9] + SECOND
    runs, records = sound()
    missed = [skipped(tick, "missed", back - tick) for tick in TICKS[2:9]]
    assert judged(target(), runs[:2] + runs[9:], records[:2] + missed + records[9:]).clean
    late = fired(TICKS[5], 5, back - TICKS[5])
    runs, records = [*runs[:2], late[0], *runs[9:]], [*records[:2], *missed, *records[9:]]
    records = [row if row.fire_at != TICKS[5] else late[1] for row in records]
    assert len(judged(target(), runs, records).wrong) == 1
    assert len(judged(target(Policy(missed=Missed.SKIP)), runs, records).wrong) == 1


def test_all_within_a_window_and_a_maximum_are_exactly_those() -> None:
    back = TICKS[9] + SECOND
    policy = Policy(missed=Missed.ALL, missed_within=timedelta(minutes=4), missed_limit=4)
    gone = [skipped(tick, "missed", back - tick) for tick in TICKS[:6]]
    pairs = [fired(tick, n, back - tick) for n, tick in enumerate(TICKS[6:])]
    runs, records = [run for run, _ in pairs], gone + [row for _, row in pairs]
    assert judged(target(policy), runs, records).clean
    assert not judged(target(replace(policy, missed_limit=3)), runs, records).clean
    assert not judged(target(replace(policy, missed_limit=5)), runs, records).wrong
    wider = replace(policy, missed_limit=5, missed_within=timedelta(minutes=5))
    assert len(judged(target(wider), runs, records).wrong) == 1


def test_a_pause_explains_its_ticks_and_no_others() -> None:
    runs, records = sound()
    pause = Pause(TICKS[4], TICKS[5])
    assert len(judged(target(pauses=(pause,)), runs, records).wrong) == 2
    records[4:6] = [skipped(tick, "paused", SECOND) for tick in TICKS[4:6]]
    del runs[4:6]
    assert judged(target(pauses=(pause,)), runs, records).clean
    assert len(judged(target(pauses=(Pause(TICKS[4], TICKS[4]),)), runs, records).wrong) == 1


def test_an_overlap_is_believed_only_while_an_earlier_job_lived() -> None:
    policy = Policy(overlap=Overlap.SKIP)
    run, row = fired(TICKS[0], 1)
    ended = replace(run, ended_at=TICKS[5])
    rows = [row, *(skipped(tick, "overlap", SECOND) for tick in TICKS[1:])]
    assert judged(target(policy), [run], rows).clean
    assert len(judged(target(policy), [ended], rows).wrong) == 5
    assert len(judged(target(), [run], rows).wrong) == 9


def test_a_job_that_is_due_outside_its_jitter_is_rejected() -> None:
    runs, records = sound()
    runs[0] = replace(runs[0], run_at=runs[0].made_at + MINUTE)
    assert len(judged(target(), runs, records).wrong) == 1
    assert judged(target(Policy(jitter=2 * MINUTE)), runs, records).clean


def test_a_definition_that_is_over_has_no_more_ticks() -> None:
    """One resurrected by an older program would be here."""
    runs, records = sound()
    stretch = Stretch(Timing(every=MINUTE), Policy(), BEGIN, TICKS[6], until=TICKS[6])
    found = judged(Target(NAME, [stretch]), runs, records)
    assert len(found.extra) == 6
