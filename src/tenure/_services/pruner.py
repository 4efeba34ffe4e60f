"""Create upcoming partitions and drop expired ones, if our role owns the tables."""

from datetime import timedelta

from tenure._services.base import Service, log
from tenure._store.engine import ServiceConnection
from tenure._store.port import Store
from tenure.errors import QueryFailed

_NOT_THE_OWNER = "42501"


class Pruner(Service):
    name = "pruner"

    def __init__(self, store: Store, link: ServiceConnection) -> None:
        super().__init__(timedelta(hours=1))
        self._store = store
        self._link = link

    async def tick(self) -> int:
        try:
            upkept = await self._link.run(self._store.maintenance.maintain())
        except QueryFailed as error:
            if error.sqlstate != _NOT_THE_OWNER:
                raise
            log.info(
                "pruner: this role does not own the tables; run tenure db maintain as the owner"
            )
        else:
            if upkept.done:
                log.info("pruner: %d partitions created or dropped", len(upkept.done))
        finally:
            await self._link.close()
        return 0
