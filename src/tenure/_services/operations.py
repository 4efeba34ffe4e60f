"""Run chunks of bulk operations when they are due. Any worker can do this."""

import random
from datetime import datetime

from tenure._clock import boottime
from tenure._services.base import Service, log
from tenure._store.engine import ServiceConnection
from tenure._store.port import Store
from tenure.config import Defaults

# This spreads workers out, so that one runs the chunk and the others find it already done.
_SPREAD = 0.01
_SHORTEST_SLEEP = 0.001
_AFTER_ANOTHER = 0.1


class OperationRunner(Service):
    """Run chunks of bulk operations.

    It checks for work over a shared connection. While there is work, it keeps its own connection
    open.
    """

    name = "advancer"

    def __init__(
        self,
        store: Store,
        looking: ServiceConnection,
        working: ServiceConnection,
        *,
        defaults: Defaults,
    ) -> None:
        super().__init__(defaults.poll)
        self._store = store
        self._looking = looking
        self._working = working
        self._due_at: float | None = None

    async def tick(self) -> int:
        sent_at = boottime()
        next_at, now = await self._looking.run(self._store.operations.next_due())
        self._due_at = _due_at(next_at, now, sent_at)
        if next_at is None:
            await self._working.close()
            return 0
        if next_at > now:
            return 0
        did = await self._working.run(self._store.operations.run_chunk())
        if did:
            log.debug("advancer: %d items done", did)
        else:
            self._due_at = sent_at + _AFTER_ANOTHER
        return did

    def _next_delay(self) -> float:
        wait = super()._next_delay()
        if self._failures or self._due_at is None:
            return wait
        spread = random.uniform(0, _SPREAD)  # noqa: S311 - spreads load
        return min(wait, max(self._due_at - boottime(), _SHORTEST_SLEEP) + spread)

    async def close(self) -> None:
        await self._working.close()


def _due_at(next_at: datetime | None, now: datetime, sent_at: float) -> float | None:
    return None if next_at is None else sent_at + (next_at - now).total_seconds()
