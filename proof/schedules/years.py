"""Years that are simulated: time is passed in, several schedulers fire in turns by the seed, each
may be left in the middle of it, the clock moves in small and large steps and now and then back,
operators pause, resume and change schedules."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from proof.schedules import checker, rows
from proof.schedules.simulated import BY, JOB, Clock, Scheduler, fire_all
from proof.schedules.targets import Pause, Stretch, Target
from tenure._model.schedule import Missed, NewSchedule, Overlap, Policy, Timing

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

    from proof.report import Report

BEGIN = datetime(2027, 1, 1, 0, 0, 0, 1, tzinfo=UTC)
_INSTANT = timedelta(microseconds=1)
_SCHEDULERS = 5
_ZONES = (
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "America/Sao_Paulo",
    "Australia/Lord_Howe",
    "Asia/Kolkata",
    "Pacific/Apia",
    "Africa/Casablanca",
)
_OFTEN = ("0 * * * *", "30 * * * *", "*/15 * * * *", "15,45 * * * *")
_SELDOM = ("30 2 * * *", "0 0 * * 1-5", "15 1,2,3 * * *", "0 12 1 * *", "59 23 * * 0", "0 3 29 2 *")
_POLICIES = (
    Policy(missed=Missed.ALL, missed_within=timedelta(days=400), missed_limit=100_000),
    Policy(missed=Missed.ALL, missed_within=timedelta(hours=30), missed_limit=20),
    Policy(missed=Missed.LATEST),
    Policy(missed=Missed.ALL, missed_within=timedelta(days=2), jitter=timedelta(minutes=5)),
    Policy(missed=Missed.SKIP),
    Policy(missed=Missed.ALL, missed_limit=300),
    Policy(missed=Missed.ALL, missed_limit=50, overlap=Overlap.SKIP),
)
# How far the clock goes at once, and how often: it creeps, walks, jumps over whole weeks.
_STEPS = (
    (400, (0.0005, 20.0)),
    (300, (20.0, 900.0)),
    (290, (900.0, 10_000.0)),
    (10, (10_000.0, 200_000.0)),
    (2, (200_000.0, 1_500_000.0)),
)
_BACK = 0.02
_STEER = 0.06
_ABANDON = 0.04


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """For how long and how many ticks at the least; how many schedules that tick often, and how
    many that do not."""

    days: int
    ticks: int
    often: int
    seldom: int
    count: int = 40


FULL = Size(days=2 * 365, ticks=930_000, often=24, seldom=24)
SHORT = Size(days=10, ticks=24_000, often=20, seldom=12)


@dataclass
class Life:
    """One schedule as it is arranged: its definitions so far, and its pauses."""

    name: str
    timing: Timing
    policy: Policy
    since: datetime
    past: list[Stretch] = field(default_factory=list)
    pauses: list[Pause] = field(default_factory=list)
    paused_at: datetime | None = None
    paused_until: datetime | None = None

    def target(self, now: datetime) -> Target:
        """Its whole life until now."""
        last = Stretch(self.timing, self.policy, self.since, now)
        return Target(self.name, [*self.past, last], self.pauses)

    def unpaused(self, now: datetime) -> None:
        """Its pause is over: it expired, or an operator ended it now."""
        assert self.paused_at is not None
        ran_out = self.paused_until - _INSTANT if self.paused_until else now
        self.pauses.append(Pause(self.paused_at, min(ran_out, now)))
        self.paused_at = self.paused_until = None


class World:
    """The schedulers, the schedules, and the clock that all of them are told."""

    def __init__(self, url: str, rng: Random, size: Size) -> None:
        self.clock = Clock(BEGIN)
        self.abandoned = self.passes = self.steered = self.back = 0
        self._ticks = 0
        self._url = url
        self._rng = rng
        self._size = size
        self._schedulers = [Scheduler(url, self.clock) for _ in range(_SCHEDULERS)]
        self._operator = Scheduler(url, self.clock)
        self._seen = self._steered_at = BEGIN
        self.lives = [self._make(number) for number in range(size.often + size.seldom)]

    def _make(self, number: int) -> Life:
        timing = self._timing(often=number < self._size.often)
        policy = _POLICIES[number % len(_POLICIES)]
        new = NewSchedule(name=f"s{number}", timing=timing, policy=policy, job=JOB)
        self._operator.run(self._operator.store.schedules.create(new, BY))
        return Life(new.name, timing, policy, self.clock.now)

    def _timing(self, *, often: bool) -> Timing:
        rng = self._rng
        if not often and rng.random() < 0.15:
            return Timing(at=self.clock.now + timedelta(seconds=rng.randrange(20_000_000)))
        if often and rng.random() < 0.4:
            return Timing(every=timedelta(seconds=rng.choice((600, 1234, 3600, 1800.5))))
        return Timing(cron=rng.choice(_OFTEN if often else _SELDOM), zone=rng.choice(_ZONES))

    def run(self) -> None:
        """Until the years are over and all is caught up."""
        end = BEGIN + timedelta(days=self._size.days)
        while self.clock.now < end or self._ticks < self._size.ticks:
            self._step_clock()
            for _ in range(self._rng.randint(1, 14)):
                self._act(self._rng.randrange(_SCHEDULERS))
            if self._rng.random() < _STEER:
                self._steer(self._rng.choice(self.lives))
        self._quiet()
        fire_all(self._operator, self.clock, self._size.count)
        for scheduler in (*self._schedulers, self._operator):
            scheduler.connection.close()
        for life in self.lives:
            if life.paused_at is not None:
                life.unpaused(self.clock.now)

    def _step_clock(self) -> None:
        rng = self._rng
        if rng.random() < _BACK:
            self.back += 1
            self._seen = max(self._seen, self.clock.now)
            back = self.clock.now - timedelta(seconds=rng.uniform(0, 30))
            self.clock.now = max(back, self._steered_at)
            return
        [(low, high)] = rng.choices([s for _, s in _STEPS], [weight for weight, _ in _STEPS])
        self.clock.advance(timedelta(seconds=rng.uniform(low, high)))

    def _act(self, index: int) -> None:
        """One step of one scheduler, or its sudden end."""
        scheduler = self._schedulers[index]
        if not scheduler.at_it:
            self.passes += 1
            scheduler.begin(self._rng.choice((1, 5, self._size.count)))
        if self._rng.random() < _ABANDON:
            self.abandoned += 1
            scheduler.abandon()
            self._schedulers[index] = Scheduler(self._url, self.clock)
        elif answer := scheduler.advance():
            self._ticks += answer.ticks

    def _quiet(self) -> None:
        """No scheduler is in the middle of a firing: an operator's action would wait for its locks.
        And the clock is where it was before it went back."""
        self.clock.now = max(self.clock.now, self._seen)
        for scheduler in self._schedulers:
            scheduler.finish()

    def _steer(self, life: Life) -> None:
        """What an operator does to one schedule: pause, resume, or another definition; or its last
        job ends, so that the next tick does not overlap."""
        self._quiet()
        self.steered += 1
        rng, now = self._rng, self.clock.advance(_INSTANT)
        self._steered_at = now + _INSTANT
        store, run = self._operator.store, self._operator.run
        if life.paused_until is not None and life.paused_until <= now:
            life.unpaused(now)
        if life.policy.overlap is Overlap.SKIP and rng.random() < 0.5:
            self._end_job(life)
        elif life.paused_at is not None:
            run(store.schedules.resume(life.name, BY))
            life.unpaused(now)
        elif rng.random() < 0.4:
            until = None
            if rng.random() < 0.7:
                until = now + timedelta(seconds=rng.uniform(1, 500_000))
            run(store.schedules.pause(life.name, BY, until=until))
            life.paused_at, life.paused_until = now, until
        elif life.timing.at is None:
            often = int(life.name[1:]) < self._size.often
            timing, policy = self._timing(often=often), rng.choice(_POLICIES)
            new = NewSchedule(name=life.name, timing=timing, policy=policy, job=JOB)
            run(store.schedules.update(new, BY))
            life.past.append(Stretch(life.timing, life.policy, life.since, now, until=now))
            life.timing, life.policy, life.since = timing, policy, now
        self.clock.advance(_INSTANT)

    def _end_job(self, life: Life) -> None:
        store, run = self._operator.store, self._operator.run
        row = run(store.schedules.get(life.name))
        if row is not None and row.last_job_id is not None:
            run(store.job_commands.cancel([row.last_job_id], BY))


def run(url: str, report: Report, rng: Random, directory: Path, *, short: bool) -> int:
    """Live through them, and match."""
    del directory
    size = SHORT if short else FULL
    world = World(url, rng, size)
    world.run()
    targets = [life.target(world.clock.now) for life in world.lives]
    found = checker.check(targets, rows.runs(url), rows.records(url), slack=timedelta(0))
    report.at_least("days simulated", (world.clock.now - BEGIN).days, size.days)
    report.note("schedules", len(targets))
    report.note("firings begun", world.passes)
    report.note("firings left in the middle", world.abandoned)
    report.note("steps of the clock back", world.back)
    report.note("pauses, resumes, changes, jobs ended", world.steered)
    found.tell(report)
    return found.checked
