"""A second claim on its way while the first one's jobs are read, where there is a backlog.

Without it the server waits while this process reads what it claimed, and this process waits while
the server claims: an eighth of the rate. It has a connection of its own, opened by the first need.
"""

from tenure._services.base import Service
from tenure._services.claimer import Claimer
from tenure._store.engine import Link
from tenure.config import Defaults


class Seconder(Service):
    """Claims beside the claimer as long as that one's claims are filled."""

    name = "claimer 2"

    def __init__(self, claimer: Claimer, link: Link, *, defaults: Defaults) -> None:
        super().__init__(defaults.poll)
        self._claimer = claimer
        self._link = link
        claimer.on_backlog = self.nudge

    async def tick(self) -> int:
        """One more claim, if there is a backlog and room for a whole one."""
        return await self._claimer.second(self._link)

    async def close(self) -> None:
        """Close the connection, if there is one."""
        await self._link.close()
