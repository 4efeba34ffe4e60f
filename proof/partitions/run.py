"""Rounds: two workers, each in a network of its own, fill with leases; their networks break, others
take over, the networks heal. Then the accounts."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from proof.crash.fleet import Shape
from proof.crash.jobs import LEASE
from proof.partitions import jobs
from support.processes import wait_for

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from random import Random

    from proof.crash.harness import Bed
    from proof.crash.program import Program
    from proof.report import Report
    from support.namespace import Namespace
    from tenure._model.job import NewJob

SHAPE = Shape(workers=2, processes=1, slots=150)
CUTS = ("half-open, no answers", "half-open, no requests", "partition")
NOISE = ("resets", "10 % loss")
_EVERY_THIRD = 3
_FILL_WITHIN = 20.0
_AGE = (0.3, 1.3)
_LASTS = (1.4, 2.2)
_LONGEST = 4
_LEAST = 2
_DRAIN_WITHIN = 60.0
_RUNNING = "SELECT count(*) FROM tenure.job AS j WHERE j.state = 'running'"
_HELD = """
SELECT j.id, j.token
FROM tenure.job AS j
JOIN tenure.worker AS w ON w.id = j.claimed_by
WHERE j.state = 'running' AND w.pid = ANY (%(pids)s)
"""


@dataclass(slots=True)
class Break:
    """One network that was broken: how, when, and the leases that were held beyond it."""

    fault: str
    at: datetime
    held: set[tuple[int, int]] = field(default_factory=set)


def _make(rng: Random, number: int) -> NewJob:
    """One job, of which the last few seconds come after the break."""
    seconds = rng.uniform(4, 9)
    if number % 50 == 0:
        return jobs.in_process.bind(seconds).job
    task = jobs.in_thread if number % 10 < 3 else jobs.on_loop
    return task.bind(seconds).job


class Rounds:
    """The rounds of one run."""

    def __init__(
        self, bed: Bed, takers: Program, networks: Sequence[Namespace], report: Report
    ) -> None:
        self.breaks: list[Break] = []
        self._bed = bed
        self._takers = takers
        self._networks = networks
        self._report = report
        self._number = 0
        self._cuts: list[str] = []

    @property
    def held(self) -> int:
        """How many leases were held beyond a cut so far."""
        return sum(len(one.held) for one in self.breaks if one.fault in CUTS)

    def run(self, losses: int) -> None:
        """Until enough leases were held beyond a cut; every third round is one of noise."""
        longest = 4 + 2 * losses // 100
        while self._number < longest and (self._number < _LEAST or self.held < 1.05 * losses):
            self._play(noise=self._number % _EVERY_THIRD == 1)
        self._takers.begin()
        self._bed.all_end(_DRAIN_WITHIN)

    def _play(self, *, noise: bool) -> None:
        """One round, to the end of its jobs."""
        bed, rng = self._bed, self._bed.rng
        self._number += 1
        self._takers.rest()
        bed.fleet.supervise()
        bed.enqueue([_make(rng, number) for number in range(SHAPE.all_slots)])
        wait_for(lambda: bed.rows(_RUNNING)[0][0] >= 0.9 * SHAPE.all_slots, _FILL_WITHIN)
        broken: list[Break] = []
        for network in self._networks:
            time.sleep(rng.uniform(*_AGE) / 2)
            fault = NOISE[len(broken)] if noise else self._cut()
            broken.append(Break(fault, bed.now()))
            network.break_link(fault)
            broken[-1].held = set(bed.rows(_HELD, pids=self._beyond(network)))
        began = time.monotonic()
        self._takers.begin()
        if not noise:
            # What is lost is taken over first: for those beyond the cut nothing is left to claim.
            wait_for(lambda: bed.open() == 0, _LONGEST * LEASE)
        for network, one in zip(self._networks, broken, strict=True):
            time.sleep(max(0.0, began + rng.uniform(*_LASTS) * LEASE - time.monotonic()))
            network.heal()
            self._report.fault(one.fault, time.monotonic() - began)
        self.breaks += broken
        wait_for(lambda: bed.open() == 0, _DRAIN_WITHIN)
        bed.history.new()

    def _cut(self) -> str:
        """Each kind as often as the others."""
        if not self._cuts:
            self._cuts = list(CUTS)
            self._bed.rng.shuffle(self._cuts)
        return self._cuts.pop()

    def _beyond(self, network: Namespace) -> list[int]:
        """The processes of the worker that reaches the database by this network."""
        workers = [w for w in self._bed.fleet.workers if w.place.before == network.command]
        return [pid for worker in workers for pid in worker.family()]
