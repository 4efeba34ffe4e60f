"""A rolling deploy of two releases of a program, with one schedule added, one changed and one
removed; and a scheduler of the old release that starts again after the new one has declared."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import TYPE_CHECKING

from proof.schedules import checker, rows
from proof.schedules.fleet import Fleet
from proof.schedules.kills import SLACK
from proof.schedules.programs import first, second
from proof.schedules.targets import FOREVER, Stretch, Target
from support.processes import wait_for

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path
    from random import Random

    from proof.report import Report
    from proof.schedules.fleet import Scheduler
    from tenure._model.schedule import NewSchedule

_OLD = "proof.schedules.programs.first:app"
_NEW = "proof.schedules.programs.second:app"
_UP = "scheduler started"
_LEFT_ALONE = "declared by a newer version"
# From the instant after which a definition has ticks to the one that is written with it.
_WRITING = timedelta(milliseconds=500)
_AUDIT = "SELECT action, target FROM tenure.audit WHERE source = 'code'"
_DEPLOYED = {
    ("schedule.declare", "schedule:kept"): 1,
    ("schedule.declare", "schedule:changed"): 2,
    ("schedule.declare", "schedule:removed"): 1,
    ("schedule.declare", "schedule:added"): 1,
    ("schedule.retire", "schedule:removed"): 1,
}


class Deploy:
    """Three places for a scheduler, each brought to the new release in turn."""

    def __init__(self, url: str, fleet: Fleet, rng: Random, rest: float) -> None:
        self._url = url
        self._fleet = fleet
        self._rng = rng
        self._rest = rest
        self.deployed_at = self.seen_at = rows.now(url)

    def run(self) -> datetime:
        """Deploy; until when there must be ticks."""
        places = [self._up(_OLD) for _ in range(3)]
        self._declared("removed")
        self.deployed_at = rows.now(self._url)
        self._fleet.stop(places[0])
        places[0] = self._up(_NEW)
        self._declared("added")
        self.seen_at = rows.now(self._url)
        self._fleet.kill(places[1])
        places[1] = self._up(_OLD, _LEFT_ALONE)
        for place in places[1:]:
            time.sleep(self._rest + self._rng.random())
            self._fleet.stop(place)
            self._up(_NEW)
        time.sleep(self._rest + self._rng.random())
        return rows.now(self._url)

    def _up(self, target: str, word: str = _UP) -> Scheduler:
        """Start one, and wait until it says so."""
        scheduler = self._fleet.start(target)
        if not wait_for(lambda: word in scheduler.log.read_text(), 30):
            raise RuntimeError(f"a scheduler did not say {word!r}; see {scheduler.log}")
        return scheduler

    def _declared(self, name: str) -> None:
        """Wait until a schedule is there, and for some ticks of it."""
        if not wait_for(lambda: name in rows.lives(self._url), 30):
            raise RuntimeError(f"{name} was not declared")
        time.sleep(self._rest + self._rng.random())


def run(url: str, report: Report, rng: Random, directory: Path, *, short: bool) -> int:
    """Deploy in turn, and match."""
    with Fleet(url, directory) as fleet:
        deploy = Deploy(url, fleet, rng, rest=0.5 if short else 3.0)
        end = deploy.run()
        caught_up = wait_for(lambda: rows.caught_up(url, end), 30)
    lives = rows.lives(url)
    report.none("schedulers that ended badly", fleet.died)
    report.none("schedules left behind", [] if caught_up else [str(end)], timed=True)
    strange = [
        f"{name}: {life}"
        for name, life in lives.items()
        if (life.retired_at is not None) != (name == "removed") or life.program_version != [2]
    ]
    report.none("schedules that are not as the second release says", strange)
    entries = rows.counted(url, _AUDIT)
    other = set(entries.items()) ^ set(_DEPLOYED.items())
    report.none("audit entries other than of what was deployed", other)
    made = [lives["added"].created_at, lives["changed"].changed_at, lives["removed"].retired_at]
    early = [at for at in made if at is None or not deploy.deployed_at <= at <= deploy.seen_at]
    report.none("changes at another time than the second release's start", early)
    found = checker.check(_targets(lives, end), rows.runs(url), rows.records(url), slack=SLACK)
    # The writing of a definition, or of a row, may take longer than is left for it here.
    found.tell(report, timed=("absent", "extra", "wrong"))
    return found.checked


def _targets(lives: dict[str, rows.Life], end: datetime) -> list[Target]:
    """What the two releases say, and when the second was deployed."""
    old, new = first.app.declared, second.app.declared
    changed, removed = lives["changed"], lives["removed"]
    assert removed.retired_at is not None
    return [
        Target("kept", [_stretch(new["kept"], lives["kept"].created_at, end)]),
        Target("added", [_stretch(new["added"], lives["added"].created_at, end)]),
        Target(
            "changed",
            [
                _stretch(old["changed"], changed.created_at, end, changed.changed_at),
                _stretch(new["changed"], changed.changed_at, end),
            ],
        ),
        Target("removed", [_stretch(old["removed"], removed.created_at, end, removed.retired_at)]),
    ]


def _stretch(
    new: NewSchedule, since: datetime, end: datetime, until: datetime = FOREVER
) -> Stretch:
    """A definition from when it was written to when the next was; the writing takes a moment."""
    sure = min(end, until - _WRITING)
    return Stretch(new.timing, new.policy, since - _WRITING, sure, until, sure_after=since)
