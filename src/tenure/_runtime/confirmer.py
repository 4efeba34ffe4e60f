"""Confirms jobs before they begin, for those whose next loss must be known.

A job that was lost before, or that fails on loss, starts only after the store knows of it. A fresh
job pays no statement. Jobs that wait are confirmed together.
"""

import asyncio
from datetime import timedelta

from tenure._clock import boottime
from tenure._runtime.held_leases import HeldLease
from tenure._services.base import Service
from tenure._store.engine import ClosableRunner
from tenure._store.port import Store

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
        for held in [held for held in self._waiting if not held.may_begin(now)]:
            self._answer(held, confirmed=False)
        batch = list(self._waiting)[:_BATCH]
        if not batch:
            return 0
        asked_at = boottime()
        answers = await self._link.run(
            self._store.leases.confirm(
                [held.lease for held in batch],
                fail_on_loss=[held.task.fails_on_loss for held in batch],
            )
        )
        for held, confirmed in zip(batch, answers, strict=True):
            if confirmed:
                held.extend(asked_at)
            self._answer(held, confirmed=confirmed and held.may_begin(boottime()))
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
