"""What claims beside the claimer, over a connection of its own.

Where there is a backlog: a second claim is on its way while the first one's jobs are read. Without
it the server waits while this process reads what it claimed, and this process waits while the
server claims. And at all times: the look below the floors, which may take long.
"""

from tenure._services.base import Service
from tenure._services.claimer import Claimer
from tenure._store.engine import ClosableRunner
from tenure.config import Defaults


class Seconder(Service):
    """Does for the claimer what must not keep it waiting."""

    name = "claimer 2"

    def __init__(self, claimer: Claimer, link: ClosableRunner, *, defaults: Defaults) -> None:
        super().__init__(defaults.poll)
        self._claimer = claimer
        self._link = link
        claimer.on_backlog = self.nudge

    async def tick(self) -> int:
        """One more claim, if there is a backlog; else a scan, once it is time for one."""
        await self._claimer.look_for_suspects(self._link)
        claimed = await self._claimer.second(self._link) or await self._claimer.scan(self._link)
        if not claimed:
            await self.rest(self._claimer.until_scan)
        return 1

    async def close(self) -> None:
        """Close the connection, if there is one."""
        await self._link.close()
