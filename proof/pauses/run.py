"""Rounds: two workers and a program fill with leases, sleep past their end, and continue, while
others have taken their jobs over; then the accounts."""

from __future__ import annotations

import signal
import time
from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from proof.crash import accounts
from proof.crash.fleet import Shape
from proof.crash.history import REFUSED
from proof.pauses import jobs, pausing
from support.processes import children, wait_for

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from proof.crash.harness import Bed, Maker
    from proof.crash.history import Line
    from proof.crash.program import Program
    from proof.pauses.pausing import Pause, Period
    from proof.report import Report
    from tenure._model.job import NewJob

# A worker is worth a stop when it holds this many of its slots.
_ENOUGH = 5 / 6
_READY_WITHIN = 60.0
_FILL_WITHIN = 20.0
_AGE = (0.3, 2.0)
_STEP = 0.01
_LAST_WORDS = 0.5
_DRAIN_WITHIN = 90.0
_PHASES = {"written": True, "left": False, "refused": False}
_ACTIVE = "SELECT w.pid FROM tenure.worker AS w WHERE w.state = 'active'"
_RUNNING = """
SELECT w.pid, count(*)
FROM tenure.job AS j
JOIN tenure.worker AS w ON w.id = j.claimed_by
WHERE j.state = 'running'
GROUP BY w.pid
"""
_STALE = """
SELECT count(*) FROM tenure.attempt AS a
WHERE a.outcome = 'lost' AND a.refused_result ->> 'state' = 'completed'
"""
_ENDS = "SELECT a.job_id, a.token, a.ended_at, a.outcome FROM tenure.attempt AS a"


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """How the workers come by their leases: how many each of them holds, the jobs they are given,
    how many transactions a pause should find open, and which accounts are closed."""

    slots: int
    make: Maker
    open_at_once: int
    settle: Callable[[Bed, Report], None]

    @property
    def shape(self) -> Shape:
        """Two workers; beside them there is a program."""
        return Shape(workers=2, processes=1, slots=self.slots)


def _make(rng: Random) -> NewJob:
    """One job, which will be at its end, or near it, when its worker continues."""
    if rng.random() < 0.85:
        return jobs.wait_and_answer.bind(rng.uniform(3.5, 9)).job
    return jobs.wait_and_enter.bind(rng.uniform(0, 1), rng.uniform(3, 7)).job


DIRECT = Way(
    slots=600,
    make=_make,
    open_at_once=20,
    settle=partial(accounts.settle, answering=jobs.ANSWERING, entering=jobs.ENTERING),
)


def run(
    bed: Bed, sleeper: Program, takers: Program, report: Report, *, leases: int, way: Way
) -> None:
    """Pause until this many leases have slept past their end, let all end, close the accounts."""
    pauses = _Pauses(bed, sleeper, takers, report, way)
    began = time.monotonic()
    with bed:
        rounds = 0
        sleeper.begin()
        while pauses.past < 1.02 * leases and rounds < 5 + leases // 300:
            rounds += 1
            pauses.play()
        takers.begin()
        bed.all_end(_DRAIN_WITHIN)
        sleeper.end()
        takers.end()
    _tell(bed, report, pauses.over, leases, time.monotonic() - began, way)


class _Pauses:
    """The pauses of one run."""

    def __init__(
        self, bed: Bed, sleeper: Program, takers: Program, report: Report, way: Way
    ) -> None:
        self.over: list[Pause] = []
        self._bed = bed
        self._sleeper = sleeper
        self._takers = takers
        self._report = report
        self._way = way
        self._inside: set[Period] = set()
        self._rounds = 0

    @property
    def past(self) -> int:
        """How many leases have slept past their end, about."""
        return sum(len(p.ends) for p in self.over if p.kind != pausing.CHILD)

    def play(self) -> None:
        """One round: fill, stop all, have others take over, resume, let all end."""
        bed, rng = self._bed, self._bed.rng
        self._takers.rest()
        wait_for(self._ready, _READY_WITHIN)
        all_slots = self._way.shape.all_slots + self._way.slots
        bed.enqueue([self._way.make(rng) for _ in range(all_slots)])
        wait_for(self._full, _FILL_WITHIN)
        asleep: list[Pause] = []
        try:
            for pid, kind in zip(self._pids, self._next_kinds(), strict=True):
                time.sleep(rng.uniform(*_AGE) / 3)
                asleep.append(pausing.begin(pid, kind, rng))
            self._takers.begin()
            while asleep:
                time.sleep(_STEP)
                self._hear(bed.history.new())
                for pause in list(asleep):
                    pausing.look(bed, pause, self._inside)
                    if pausing.wake(bed, pause):
                        asleep.remove(pause)
                        self.over.append(pause)
                        self._report.fault(pause.kind, time.monotonic() - pause.began)
        finally:
            for pause in asleep:
                pausing.release(pause)
        self._replace()
        wait_for(lambda: bed.open() == 0, _DRAIN_WITHIN)

    def _replace(self) -> None:
        """End all workers once they have reported: a child that started again
        would start a process for each of hundreds of lost jobs. The next round finds new ones."""
        time.sleep(_LAST_WORDS)
        for worker in self._bed.fleet.workers:
            worker.dismiss(signal.SIGTERM)

    @property
    def _pids(self) -> list[int]:
        """Who is to be stopped: the program, and the workers as they are now."""
        return [self._sleeper.pid, *(worker.pid for worker in self._bed.fleet.workers)]

    def _ready(self) -> bool:
        """Whether every worker has a child that works."""
        self._bed.fleet.supervise()
        active = {pid for (pid,) in self._bed.rows(_ACTIVE)}
        return all(active & {*worker.children()} for worker in self._bed.fleet.workers)

    def _full(self) -> bool:
        """Whether each holds enough."""
        held = Counter(dict(self._bed.rows(_RUNNING)))
        enough = _ENOUGH * self._way.slots
        return all(held[p] + sum(held[c] for c in children(p)) >= enough for p in self._pids)

    def _next_kinds(self) -> list[str]:
        """Who is stopped how. Of a child that is stopped alone the parent makes an end before its
        leases do; so these are fewer."""
        kinds = [pausing.TOGETHER, pausing.FREEZER]
        self._bed.rng.shuffle(kinds)
        self._rounds += 1
        return [pausing.PROGRAM, *(kinds if self._rounds % 2 else [pausing.CHILD, kinds[0]])]

    def _hear(self, lines: list[Line]) -> None:
        """Keep who is inside a transaction."""
        for line in lines:
            inside = _PHASES.get(line.phase)
            if inside is not None:
                change = self._inside.add if inside else self._inside.discard
                change((line.job_id, line.token))


def _tell(
    bed: Bed, report: Report, pauses: list[Pause], leases: int, seconds: float, way: Way
) -> None:
    ends = {(job, token): (at, outcome) for job, token, at, outcome in bed.rows(_ENDS)}
    past = taken = early = 0
    for pause in pauses:
        for period in pause.ends.keys() & ends.keys():
            ended_at, outcome = ends[period]
            if pause.kind == pausing.CHILD:
                early += outcome == "lost"
            elif pause.woken_at is not None and pause.ends[period] <= pause.woken_at:
                slept = ended_at >= pause.ends[period]
                past += slept
                taken += slept and outcome == "lost"
    report.note("pauses", len(pauses))
    for kind in pausing.KINDS:
        report.note(f"  {kind}", sum(pause.kind == kind for pause in pauses))
    report.at_least("leases paused past their end", past, leases)
    report.note("  of these lost to others", taken)
    report.note("leases of children stopped alone, which the parent ended", early)
    report.note("leases paused past their end, per hour", round(3600 * past / seconds))
    if way.open_at_once:
        most = max((pause.inside for pause in pauses), default=0)
        report.at_least("open transactions in one pause, at most", most, way.open_at_once)
        report.note("open transactions in all pauses", sum(pause.inside for pause in pauses))
    way.settle(bed, report)
    [(stale,)] = bed.rows(_STALE)
    stale += len(bed.history.periods(REFUSED))
    report.at_least("  that said the job was done", stale, leases // 20)
