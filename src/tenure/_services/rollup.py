"""Roll ended attempts up into per-minute counts. Only one worker at a time does this."""

from datetime import timedelta

from tenure._services.base import Service
from tenure._store.engine import ServiceConnection
from tenure._store.port import Store

_PAUSE = timedelta(seconds=30)
_MINUTES = 60


class RollupService(Service):
    name = "folder"

    def __init__(self, store: Store, link: ServiceConnection) -> None:
        super().__init__(_PAUSE)
        self._store = store
        self._link = link

    async def tick(self) -> int:
        folded = 0
        try:
            while folded < _MINUTES:
                minutes = await self._link.run(self._store.stats.roll_up())
                if not minutes:
                    return 0
                folded += minutes
        finally:
            await self._link.close()
        return folded
