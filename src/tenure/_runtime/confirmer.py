"""Record that a job is about to start, if its next loss has to be counted.

This applies to jobs that were lost before and to jobs that fail on loss. For other jobs, no
statement is needed.
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
    name = "confirmer"

    def __init__(self, store: Store, link: ClosableRunner) -> None:
        # If a job waited here past its lease deadline, the whole child would be killed.
        super().__init__(
            timedelta(seconds=1), retry=timedelta(seconds=0.05), longest=timedelta(seconds=0.2)
        )
        self._store = store
        self._link = link
        self._waiting: dict[HeldLease, asyncio.Future[bool]] = {}

    def confirm(self, held: HeldLease) -> asyncio.Future[bool]:
        """Return a future that resolves to True once the start is recorded.

        It resolves to False if the job must not start.
        """
        future = self._waiting[held] = asyncio.get_running_loop().create_future()
        self.run_soon()
        return future

    async def tick(self) -> int:
        now = boottime()
        for held in [held for held in self._waiting if not held.may_begin(now)]:
            self._answer(held, confirmed=False)
        batch = list(self._waiting)[:_BATCH]
        if not batch:
            return 0
        sent_at = boottime()
        answers = await self._link.run(
            self._store.leases.confirm(
                [held.lease for held in batch],
                fail_on_loss=[held.task.fails_on_loss for held in batch],
            )
        )
        for held, confirmed in zip(batch, answers, strict=True):
            if confirmed:
                held.extend(sent_at)
            self._answer(held, confirmed=confirmed and held.may_begin(boottime()))
        return len(batch)

    def _answer(self, held: HeldLease, *, confirmed: bool) -> None:
        future = self._waiting.pop(held)
        if not future.done():
            future.set_result(confirmed)

    async def close(self) -> None:
        for held in list(self._waiting):
            self._answer(held, confirmed=False)
        await self._link.close()
