"""`just prove spot [--short] [--seed N] [--lease S]`: whole workers killed, as on spot instances.

Parent and children die together: by SIGKILL, by SIGKILL soon after SIGTERM, by a container's kill.
No innocent may pay, and a long job that moves its cursor survives. A job that takes its whole
worker down ends as poison after exactly ten counted losses, also where workers have no parent.
"""

from __future__ import annotations

import signal
import time
from contextlib import ExitStack
from itertools import cycle
from typing import TYPE_CHECKING

from proof.crash.fleet import Shape
from proof.justice import judge
from proof.justice.cast import Cast
from proof.justice.harness import job
from proof.justice.judge import Innocent, Strike
from proof.justice.ledger import BEAT
from proof.justice.pills import pills
from proof.justice.stage import prove
from support.processes import send

if TYPE_CHECKING:
    from proof.crash.fleet import Worker
    from proof.justice.harness import Bed
    from proof.justice.pills import Pill
    from proof.justice.stage import Stage

_FULL, _SHORT = 200, 4
_OF_EXPORT, _OF_EXPORT_SHORT = 30, 4
_SHAPE = Shape(workers=2, processes=1, slots=12)
_BUSY = 8
_MOVES = 2
_GAP = 1.0
_UP_AFTER = 2.5
# SIGTERM is followed by SIGKILL before the grace of a second is over.
_NOTICE = 0.3
_WAYS = ("SIGKILL", "SIGKILL after SIGTERM", "container")


class Kills:
    """Workers that are killed whole, with innocents and one long export in them."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self.bed = stage.bed("kills", _SHAPE)
        self._cast = Cast(self.bed)
        self._kills = _SHORT if stage.short else _FULL
        self._of_export = _OF_EXPORT_SHORT if stage.short else _OF_EXPORT
        self._ways = cycle(_WAYS)
        self._strikes: list[Strike] = []
        self._export = 0
        self._exported = 0
        self._next_at = 0.0
        self._seen_at: dict[int, float] = {}
        self._warned: tuple[Worker, list[int], float, float] | None = None

    def start(self) -> None:
        """Start the export, and innocents next to it."""
        steps = 8 * self._of_export
        export = job("export", max_attempts=20, steps=steps, pause=0.15)
        [self._export] = self.bed.enqueue([export])
        self._feed()

    @property
    def is_over(self) -> bool:
        """Whether there were enough kills, or the export cannot be killed any more."""
        if len(self._strikes) >= self._kills:
            return self._warned is None
        return self._stage.short and not judge.unfinished([self._export], self.bed.fates())

    def tick(self) -> None:
        """Feed, and kill when it is time."""
        self.bed.supervise()
        self._feed()
        self.bed.ledger.read()
        now = time.monotonic()
        if self._warned is not None:
            worker, family, at, kill_at = self._warned
            if now >= kill_at:
                self._warned = None
                self._kill(worker, family, at)
            return
        for one in self.bed.fleet.workers:
            self._seen_at.setdefault(one.pid, now)
        if now < self._next_at or len(self._strikes) >= self._kills:
            return
        if self._exported < self._of_export:
            worker_of_export = self._moving()
            if worker_of_export is None or not self._is_spare(worker_of_export, now):
                return
            self._exported += 1
            self._strike(worker_of_export)
        else:
            worker = self._stage.rng.choice(self.bed.fleet.workers)
            if self._is_spare(worker, now):
                self._strike(worker)

    def _is_spare(self, worker: Worker, now: float) -> bool:
        """Whether another worker is up: the bound is for a slot that is free somewhere."""
        return any(
            now - self._seen_at[one.pid] > _UP_AFTER
            for one in self.bed.fleet.workers
            if one is not worker
        )

    def _feed(self) -> None:
        live = self.bed.count("SELECT count(*) FROM tenure.job")
        for _ in range(_BUSY - live):
            self._cast.add(1, self._stage.rng.uniform(0.5, 2.0))

    def _moving(self) -> Worker | None:
        """The worker in which the export has moved its cursor since it began."""
        marks = [mark for mark in self.bed.ledger.marks if mark.job == self._export]
        if not marks or [m.kind for m in marks[-_MOVES:]] != [BEAT] * _MOVES:
            return None
        workers = [w for w in self.bed.fleet.workers if marks[-1].pid in w.family()]
        return workers[0] if workers else None

    def _strike(self, worker: Worker) -> None:
        way, at, family = next(self._ways), time.time(), worker.family()
        self._stage.report.fault(f"a whole worker was killed: {way}")
        self._next_at = time.monotonic() + _GAP
        if way == "SIGKILL after SIGTERM":
            worker.dismiss(signal.SIGTERM)
            self._warned = (worker, family, at, time.monotonic() + _NOTICE)
            return
        # A container's limit takes parent and children; handlers' processes end with these.
        self._kill(worker, family if way == "SIGKILL" else [worker.pid, *worker.children()], at)

    def _kill(self, worker: Worker, family: list[int], at: float) -> None:
        worker.dismiss(signal.SIGKILL)
        for pid in family[1:]:
            send(pid, signal.SIGKILL)
        self._strikes.append(Strike("worker killed", at, time.time(), frozenset(family)))

    def judge(self) -> None:
        """Judge the innocents and the export."""
        stage, report = self._stage, self._stage.report
        report.part("whole workers killed")
        report.jobs += len(self._cast.innocents) + 1
        report.at_least("workers killed", len(self._strikes), self._kills)
        report.at_least("  that ran the export", self._exported, self._of_export)
        innocents = [*self._cast.innocents, Innocent(self._export, 1.0)]
        stage.acquit(self.bed, innocents, self._strikes)


def play(stage: Stage) -> None:
    """Kill workers, and let pills kill others at the same time."""
    kills = Kills(stage)
    guilty = pills(stage)
    beds: list[Bed] = [kills.bed, *(pill.bed for pill in guilty)]
    try:
        with ExitStack() as entered:
            for bed in beds:
                entered.enter_context(bed)
            kills.start()
            for pill in guilty:
                pill.start()
            _play(stage, kills, guilty)
        kills.judge()
        for pill in guilty:
            pill.judge()
    finally:
        for bed in beds:
            bed.close()


def _play(stage: Stage, kills: Kills, guilty: list[Pill]) -> None:
    longest = 45.0 if stage.short else 600.0 * stage.lease
    until = time.monotonic() + longest
    while time.monotonic() < until:
        if not kills.is_over:
            kills.tick()
        else:
            kills.bed.supervise()
        for pill in guilty:
            pill.tick()
        if kills.is_over and all(pill.is_over for pill in guilty):
            break
        time.sleep(0.05)
    kills.bed.wait_ended(3 * stage.lease + 10)


def main(argv: list[str]) -> int:
    """Run it; 0 if no bar was missed."""
    return prove("spot", __doc__, play, argv)
