"""SIGSTOP for longer than the lease, then SIGCONT: who slept through his lease changes nothing."""

from __future__ import annotations

import signal
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from proof.crash import jobs, losses
from proof.crash.fleet import Shape
from proof.crash.losses import Blow
from support.processes import children, send

if TYPE_CHECKING:
    from collections.abc import Sequence

    from proof.crash.fleet import Worker
    from proof.crash.harness import Bed
    from proof.crash.history import Line
    from proof.crash.way import Way
    from proof.report import Report

SHAPE = Shape(workers=6, processes=1, slots=3)
BAR = 2.3
_ASLEEP_AT_ONCE = 3
# Less than the slots of those that are awake: what is lost finds one free.
_BUSY = (SHAPE.workers - _ASLEEP_AT_ONCE) * SHAPE.slots - 2
_SLEEP = (1.5, 2.0)
_GAP = (0.1, 0.6)
_DRAIN_WITHIN = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How many stops, and how many of them at least inside an open transaction, if handlers have
    any."""

    stops: int
    inside: int

    @property
    def longest(self) -> float:
        """By when it must be over, in seconds; far more than it takes."""
        return 60 + 8 * self.stops


@dataclass(slots=True)
class Sleeper:
    """A worker of which some processes are stopped, and when they continue, in this order."""

    worker: Worker
    wake: list[tuple[float, int]]


def run(bed: Bed, report: Report, plan: Plan, way: Way) -> None:
    """Stop until the plan is fulfilled, let everything end, and close the accounts."""
    with bed:
        stops = _Stops(bed, plan, way)
        stops.run()
        bed.all_end(_DRAIN_WITHIN)
    left = set(bed.history.periods("left"))
    inside = [line for line in stops.inside if (line.job_id, line.token) not in left]
    report.at_least("SIGSTOPs past the lease", len(stops.blows), plan.stops)
    whole = sum(blow.kind == "family" for blow in stops.blows)
    report.note("  of parent and children together", whole)
    if plan.inside:
        report.at_least("  inside an open transaction", len(inside), plan.inside)
    way.settle(bed, report)
    found = losses.find(bed, stops.blows)
    losses.tell(report, found)
    report.at_most(
        "until running elsewhere, each",
        losses.quantile((loss.elsewhere for loss in found.struck), 1),
        BAR * jobs.LEASE,
        " s",
    )


class _Stops:
    """Stops workers, a few at a time, and wakes them."""

    def __init__(self, bed: Bed, plan: Plan, way: Way) -> None:
        self.blows: list[Blow] = []
        self.inside: list[Line] = []
        self._bed = bed
        self._plan = plan
        self._way = way
        self._asleep: list[Sleeper] = []

    def run(self) -> None:
        """Until the plan is fulfilled and all are awake."""
        rng = self._bed.rng
        give_up_at = time.monotonic() + self._plan.longest
        next_at = 0.0
        phase = self._way.stop_at[0]
        while self._unfulfilled or self._asleep:
            lines = self._bed.pump(self._way.stopped, busy=_BUSY)
            now = time.monotonic()
            if now > give_up_at:
                break
            self._wake(now)
            free = self._unfulfilled and len(self._asleep) < _ASLEEP_AT_ONCE and now >= next_at
            if free and self._stop_one(lines, phase):
                next_at = now + rng.uniform(*_GAP)
                phase = rng.choice(self._way.stop_at)

    @property
    def _unfulfilled(self) -> bool:
        return len(self.blows) < self._plan.stops or len(self.inside) < self._plan.inside

    def _stop_one(self, lines: Sequence[Line], phase: str) -> bool:
        """Stop a worker whose handler has just said that it is there."""
        asleep = [sleeper.worker for sleeper in self._asleep]
        for line in (line for line in lines if line.phase == phase):
            for worker in self._bed.fleet.workers:
                for child in worker.children():
                    if line.of(child) and worker not in asleep:
                        self._stop(worker, child, line)
                        return True
        return False

    def _stop(self, worker: Worker, child: int, line: Line) -> None:
        rng = self._bed.rng
        together = rng.random() < 0.5
        processes = children(child)
        wake_at = time.monotonic() + rng.uniform(*_SLEEP) * jobs.LEASE
        sleeper = Sleeper(worker, [(wake_at, pid) for pid in (*processes, child)])
        at = self._bed.now()
        if together:
            # The sleeper wakes first: for a moment nothing keeps it from offering its result.
            send(worker.pid, signal.SIGSTOP)
            sleeper.wake.append((wake_at + rng.uniform(0, 0.5), worker.pid))
        for pid in (child, *processes):
            send(pid, signal.SIGSTOP)
        self._asleep.append(sleeper)
        kind = "family" if together else "child"
        self.blows.append(Blow(at, kind, line.phase, (child,)))
        if line.phase == self._way.stop_at[0]:
            self.inside.append(line)

    def _wake(self, now: float) -> None:
        for sleeper in list(self._asleep):
            while sleeper.wake and now >= sleeper.wake[0][0]:
                send(sleeper.wake.pop(0)[1], signal.SIGCONT)
            if not sleeper.wake:
                self._asleep.remove(sleeper)
