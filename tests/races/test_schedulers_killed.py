"""A scheduler that is killed between any two statements of a firing: real processes, SIGKILL."""

from __future__ import annotations

import multiprocessing
import signal
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from proof.schedules import checker, faults, rows
from proof.schedules.simulated import BY, JOB, Clock, Scheduler, fire_all
from proof.schedules.targets import Pause, Stretch, Target
from support.store import install
from tenure._model.schedule import Missed, NewSchedule, Overlap, Policy, Timing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from support.databases import Databases

BEGIN = datetime(2027, 3, 28, 0, 30, 0, 250_000, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
_MOST_STEPS = 12


@dataclass(frozen=True)
class Case:
    """Schedules that are due together, and for how long they were not fired."""

    policies: tuple[Policy, ...]
    away: timedelta
    paused: bool = False


CASES = {
    "on time": Case((Policy(), Policy(missed=Missed.SKIP)), MINUTE),
    "skip": Case((Policy(missed=Missed.SKIP),), timedelta(minutes=30)),
    "latest": Case((Policy(missed=Missed.LATEST),), timedelta(minutes=30)),
    "all": Case((Policy(missed=Missed.ALL, missed_limit=9),), timedelta(minutes=30)),
    "overlap": Case((Policy(missed=Missed.ALL, overlap=Overlap.SKIP),), timedelta(minutes=30)),
    "jitter": Case((Policy(jitter=MINUTE),), timedelta(minutes=30)),
    "paused": Case((Policy(),), timedelta(minutes=30), paused=True),
}


@pytest.fixture
def url(databases: Databases) -> Iterator[str]:
    url = databases.create(databases.template("tenure", install))
    yield url
    databases.drop(url)


def killed(
    action: Callable[[str, datetime, int], None], url: str, now: datetime, steps: int
) -> bool:
    """Whether the process was killed; it ends by itself if there are fewer steps."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([faults.__name__])
    process = context.Process(target=action, args=(url, now, steps))
    process.start()
    process.join(30)
    assert process.exitcode in (0, -signal.SIGKILL)
    return process.exitcode != 0


@pytest.mark.parametrize("action", [faults.die_after, faults.die_sending])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_scheduler_killed_between_any_two_statements_loses_and_doubles_nothing(
    action: Callable[[str, datetime, int], None], case: Case, url: str
) -> None:
    """Each blow finds ticks of its own: everything is due again before it. Shows R26."""
    clock = Clock(BEGIN)
    scheduler = Scheduler(url, clock)
    timings = (Timing(every=MINUTE), Timing(cron="*/5 * * * *", zone="Europe/Berlin"))
    definitions = {
        f"{kind}-{number}": (timing, policy)
        for kind, timing in enumerate(timings)
        for number, policy in enumerate(case.policies)
    }
    for name, (timing, policy) in definitions.items():
        new = NewSchedule(name=name, timing=timing, policy=policy, job=JOB)
        scheduler.run(scheduler.store.schedules.create(new, BY))
        if case.paused:
            scheduler.run(scheduler.store.schedules.pause(name, BY))
    blows = 0
    for steps in range(_MOST_STEPS):
        blows += killed(action, url, clock.advance(case.away), steps)
        fire_all(scheduler, clock, faults.COUNT)
    scheduler.connection.close()
    pauses = [Pause(BEGIN)] if case.paused else []
    found = checker.check(
        [
            Target(name, [Stretch(*definition, BEGIN, clock.now)], pauses)
            for name, definition in definitions.items()
        ],
        rows.runs(url),
        rows.records(url),
        slack=timedelta(0),
    )
    assert found.clean, found
    assert found.targets > 0
    # Looking, BEGIN, locking, recording and COMMIT, at least: each was the last of some process.
    assert 5 <= blows < _MOST_STEPS
