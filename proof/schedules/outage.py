"""Two hours without any scheduler, under each policy for missed ticks: exactly the jobs that the
policy says, and a row for each of the others. Time is passed in."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from proof.schedules import checker, rows
from proof.schedules.simulated import BY, JOB, Clock, Scheduler, fire_all
from proof.schedules.targets import Stretch, Target
from tenure._model.schedule import Missed, NewSchedule, Overlap, Policy, Timing

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

    from proof.report import Report

# The outage takes in the night in which Berlin's clocks jump from 02:00 to 03:00, 01:00 UTC.
BEGIN = datetime(2026, 3, 29, 0, 10, 0, 123_000, tzinfo=UTC)
OUTAGE = timedelta(hours=2)
STEADY = timedelta(minutes=3)
_STEP = timedelta(seconds=2)
_COUNT = 100

WHEN = {
    "every-10s": Timing(every=timedelta(seconds=10)),
    "every-1min": Timing(every=timedelta(minutes=1)),
    "hourly": Timing(cron="7 * * * *"),
    "daily": Timing(cron="0 1 * * *"),
    "daily-in-the-gap": Timing(cron="30 2 * * *", zone="Europe/Berlin"),
}
# Each policy, and how many of the missed ticks make a job.
POLICIES = {
    "skip": Policy(missed=Missed.SKIP),
    "latest": Policy(missed=Missed.LATEST),
    "all": Policy(missed=Missed.ALL, missed_limit=10_000),
    "all-within-30min": Policy(
        missed=Missed.ALL, missed_within=timedelta(minutes=30), missed_limit=10_000
    ),
    "all-most-5": Policy(missed=Missed.ALL, missed_limit=5),
    "all-within-1h-most-7": Policy(
        missed=Missed.ALL, missed_within=timedelta(hours=1), missed_limit=7
    ),
    "all-overlap-skip": Policy(missed=Missed.ALL, missed_limit=10_000, overlap=Overlap.SKIP),
}


def run(url: str, report: Report, rng: Random, directory: Path, *, short: bool) -> int:
    """Fire for a while, be away for two hours, fire again; nothing here is left to chance."""
    del rng, directory, short
    clock = Clock(BEGIN)
    scheduler = Scheduler(url, clock)
    names = {f"{when}:{policy}": (when, policy) for when in WHEN for policy in POLICIES}
    for name, (when, policy) in names.items():
        new = NewSchedule(name=name, timing=WHEN[when], policy=POLICIES[policy], job=JOB)
        scheduler.run(scheduler.store.schedules.create(new, BY))
    _steady(scheduler, clock)
    left_at = clock.now
    back_at = clock.advance(OUTAGE)
    passes = fire_all(scheduler, clock, _COUNT)
    _steady(scheduler, clock)
    scheduler.connection.close()
    targets = [
        Target(name, [Stretch(WHEN[when], POLICIES[policy], BEGIN, clock.now)])
        for name, (when, policy) in names.items()
    ]
    runs = list(rows.runs(url))
    found = checker.check(targets, runs, rows.records(url), slack=timedelta(0))
    report.note("schedules", len(names))
    report.note("passes to catch up", passes)
    found.tell(report)
    made = {(run.schedule, run.tick_at) for run in runs}
    report.none(
        "ticks of the outage against what is told in words",
        [
            f"{target.name} {tick}: a job should {'' if wanted else 'not '}be there"
            for target in targets
            for tick, wanted in _wanted(target, left_at, back_at).items()
            if wanted != ((target.name, tick) in made)
        ],
    )
    return found.checked


def _steady(scheduler: Scheduler, clock: Clock) -> None:
    until = clock.now + STEADY
    while clock.now < until:
        clock.advance(_STEP)
        fire_all(scheduler, clock, _COUNT)


def _wanted(target: Target, left_at: datetime, back_at: datetime) -> dict[datetime, bool]:
    """Which ticks of the outage make a job, as an operator would count them on the fingers."""
    [stretch] = target.stretches
    policy = stretch.policy
    ticks = [tick for tick in stretch.ticks if left_at < tick <= back_at]
    if policy.overlap is Overlap.SKIP:
        before = any(tick <= left_at for tick in stretch.ticks)
        return {tick: not before and tick == ticks[0] for tick in ticks}
    # One whose successor is not due yet is merely late, within a minute.
    on_time = {t for t in ticks if back_at - t <= min(stretch.successor(t) - t, timedelta(0, 60))}
    made: set[datetime] = set()
    if policy.missed is Missed.LATEST:
        made = set(ticks[-1:])
    elif policy.missed is Missed.ALL:
        made = {t for t in ticks if back_at - t <= policy.missed_within}
        made &= set(ticks[-policy.missed_limit :])
    return {tick: tick in made | on_time for tick in ticks}
