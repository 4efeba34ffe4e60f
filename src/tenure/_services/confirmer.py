"""Says that jobs are about to begin, before they do, for those whose next loss must be known.

A job that was lost before, or that fails on loss, starts only after the store knows of it. A fresh
job pays no statement. What waits is confirmed together.
"""

import asyncio
from datetime import timedelta

from tenure._services.base import Service
from tenure._services.holdings import Held
from tenure._store.engine import ClosableRunner
from tenure._store.port import Store
from tenure.job import boottime

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
        self._waiting: dict[Held, asyncio.Future[bool]] = {}

    def confirm(self, held: Held) -> asyncio.Future[bool]:
        """Answer once the store knows that the job begins; False if it may not begin."""
        future = self._waiting[held] = asyncio.get_running_loop().create_future()
        self.nudge()
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

    def _answer(self, held: Held, *, confirmed: bool) -> None:
        future = self._waiting.pop(held)
        if not future.done():
            future.set_result(confirmed)

    async def close(self) -> None:
        """Answer what still waits, and close the connection."""
        for held in list(self._waiting):
            self._answer(held, confirmed=False)
        await self._link.close()


def may_begin(held: Held, now: float) -> bool:
    """Whether the lease can still be trusted, and nothing has asked the job to stop."""
    return held.stopping is None and now < held.trusted_until
