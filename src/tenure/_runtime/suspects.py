"""Suspects: confirmed before they begin, and run alone.

Says that jobs are about to begin, before they do, for those whose next loss must be known.

A job that was lost before, or that fails on loss, starts only after the store knows of it. A fresh
job pays no statement. What waits is confirmed together.

When a process holds one suspect and nothing else, and when it makes room for one.

A suspect that takes down more than its own process is claimed only by a process that holds nothing
(rule 8). A busy process never does by itself, so it stops claiming for a while if such a job waits.
"""

import asyncio
from collections.abc import Sequence
from datetime import timedelta

from tenure._clock import boottime
from tenure._rules import lifecycle
from tenure._rules.lifecycle import ALONE_FROM, MAX_WORKER_LOSSES
from tenure._runtime.held_leases import HeldLease, HeldLeases
from tenure._services.base import Service
from tenure._store.engine import AsyncRunner, ClosableRunner
from tenure._store.port import Store
from tenure.config import Defaults

_BATCH = 500


class Confirmer(Service):
    """Confirms claims, in batches. Lives on the loop that runs handlers."""

    name = "confirmer"

    def __init__(self, store: Store, link: ClosableRunner) -> None:
        # A job that waits here past its lease's deadline would end the whole child.
        super().__init__(
            timedelta(seconds=1), retry=timedelta(seconds=0.05), longest=timedelta(seconds=0.2)
        )
        self._store = store
        self._link = link
        self._waiting: dict[HeldLease, asyncio.Future[bool]] = {}

    def confirm(self, held: HeldLease) -> asyncio.Future[bool]:
        """Answer once the store knows that the job begins; False if it may not begin."""
        future = self._waiting[held] = asyncio.get_running_loop().create_future()
        self.run_soon()
        return future

    async def tick(self) -> int:
        """Confirm what waits; what may not begin any more is answered without a statement."""
        now = boottime()
        for held in [each for each in self._waiting if not may_begin(each, now)]:
            self._answer(held, confirmed=False)
        batch = list(self._waiting)[:_BATCH]
        if not batch:
            return 0
        asked_at = boottime()
        answers = await self._link.run(
            self._store.confirm(
                [held.lease for held in batch],
                fail_on_loss=[held.task.fails_on_loss for held in batch],
            )
        )
        for held, confirmed in zip(batch, answers, strict=True):
            if confirmed:
                held.extend(asked_at)
            self._answer(held, confirmed=confirmed and may_begin(held, boottime()))
        return len(batch)

    def _answer(self, held: HeldLease, *, confirmed: bool) -> None:
        future = self._waiting.pop(held)
        if not future.done():
            future.set_result(confirmed)

    async def close(self) -> None:
        """Answer what still waits, and close the connection."""
        for held in list(self._waiting):
            self._answer(held, confirmed=False)
        await self._link.close()


def may_begin(held: HeldLease, now: float) -> bool:
    """Whether the lease can still be trusted, and nothing has asked the job to stop."""
    return held.stopping is None and now < held.trusted_until


class Isolation:
    """Keeps a dangerous suspect apart from everything else that this process holds."""

    def __init__(
        self,
        store: Store,
        holdings: HeldLeases,
        *,
        queues: Sequence[str],
        has_processes: bool,
        defaults: Defaults,
    ) -> None:
        self._store = store
        self._holdings = holdings
        self._queues = queues
        # Where a job cannot have a process of its own, every suspect must be alone.
        self._alone_from = ALONE_FROM if has_processes else 0
        self._lease = defaults.lease.total_seconds()
        self._free_at = boottime()
        self._makes_room_until = 0.0

    @property
    def forbids_claims(self) -> bool:
        """Whether nothing may be claimed now: a suspect is alone here, or is to be."""
        if not len(self._holdings):
            return False
        suspects = list(self._holdings.suspects)
        if any(lifecycle.runs_alone(held.job, alone_from=self._alone_from) for held in suspects):
            return True
        return boottime() < self._makes_room_until

    def limit(self, wanted: int) -> int:
        """The number of worker losses from which on a claim leaves suspects to others, while so
        many jobs are asked for already."""
        if wanted or len(self._holdings):
            return self._alone_from
        self._free_at = boottime()
        self._makes_room_until = 0.0
        return MAX_WORKER_LOSSES

    async def check_for_suspects(self, link: AsyncRunner) -> None:
        """After a lease without a moment that was free, see whether a suspect waits for one, and
        make room for up to a lease; then work goes on for a lease at least."""
        now = boottime()
        if now < self._free_at + self._lease or not len(self._holdings):
            return
        waits = await link.run(self._store.suspect_waits(self._queues, self._alone_from))
        self._free_at = now + self._lease
        if waits:
            self._makes_room_until = now + self._lease
