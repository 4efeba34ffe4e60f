"""Five schedulers, a thousand schedules, and a SIGKILL every five seconds of real time."""

from __future__ import annotations

import importlib
import os
import time
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from proof.crash.losses import quantile
from proof.schedules import checker, rows
from proof.schedules.fleet import Fleet
from proof.schedules.targets import Stretch, Target
from support.processes import wait_for

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

    from proof.report import Report

_PROGRAM = "proof.schedules.programs.many"
_SCHEDULERS = 5
_GAP = 5.0
# Most ticks are due at whole seconds: a blow just after one finds a firing more often.
_AIMED = 0.8
_AIM_WITHIN = 0.25
_CATCH_UP_WITHIN = 60.0
# From the judgement of a tick to its row: two statements of one transaction on a busy machine.
SLACK = timedelta(seconds=3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How many schedules, and for how long there are kills."""

    schedules: int
    seconds: float


FULL = Size(schedules=1000, seconds=120)
SHORT = Size(schedules=200, seconds=20)


def run(url: str, report: Report, rng: Random, directory: Path, *, short: bool) -> int:
    """Kill for this long, let them catch up, and match."""
    size = SHORT if short else FULL
    count = str(size.schedules)
    began_at = rows.now(url)
    with Fleet(url, directory, {"PROOF_SCHEDULES": count}) as fleet:
        for _ in range(_SCHEDULERS):
            fleet.start(f"{_PROGRAM}:app")
        if not wait_for(lambda: len(rows.lives(url)) == size.schedules, 60):
            raise RuntimeError(f"the schedules were not declared; see {directory}")
        made_at = rows.now(url)
        killed = _kill(fleet, rng, size.seconds)
        end = rows.now(url)
        caught_up = wait_for(lambda: rows.caught_up(url, end), _CATCH_UP_WITHIN)
    os.environ["PROOF_SCHEDULES"] = count
    declared = importlib.import_module(_PROGRAM).app.declared
    lives = rows.lives(url)
    targets = [
        Target(
            name,
            [Stretch(new.timing, new.policy, began_at, end, sure_after=lives[name].created_at)],
        )
        for name, new in declared.items()
    ]
    found = checker.check(targets, rows.runs(url), rows.records(url), slack=SLACK)
    report.at_least("schedules", len(lives), size.schedules)
    report.at_least("SIGKILLs", killed, size.seconds / _GAP - 1)
    report.none("schedulers that ended by themselves", fleet.died)
    strange = [n for n, life in lives.items() if not began_at <= life.created_at <= made_at]
    report.none("schedules made at another time than they were declared", strange)
    report.none("schedules left behind", [] if caught_up else [str(end)], timed=True)
    # A row may come later than the slack allows; and until all have caught up, ticks are absent.
    found.tell(report, timed=("wrong",) if caught_up else ("wrong", "absent"))
    late = rows.lateness(url)
    for name, share in (("p50", 0.5), ("p99", 0.99), ("max", 1.0)):
        report.note(f"from the tick to its job, {name}", quantile(late, share), " s")
    return found.checked


def _kill(fleet: Fleet, rng: Random, seconds: float) -> int:
    """SIGKILL to one after the other, each replaced at once; how many."""
    until = time.monotonic() + seconds
    killed = 0
    while time.monotonic() + _GAP <= until:
        time.sleep(_GAP - 1)
        second = time.time()
        if rng.random() < _AIMED:
            second = second // 1 + 1 + rng.uniform(0, _AIM_WITHIN)
        else:
            second += rng.random()
        time.sleep(max(0.0, second - time.time()))
        fleet.kill(rng.choice(fleet.running))
        killed += 1
        fleet.start(f"{_PROGRAM}:app")
    return killed
