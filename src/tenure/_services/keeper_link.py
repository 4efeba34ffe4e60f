"""A connection on the keeper's loop, for a service that lives on the loop that runs handlers.

The answer to a claim arrives here. On the handlers' loop it would wait in the socket for as long
as a handler blocks that loop, and no thread would renew the leases in it (rule 7).
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from tenure._services.keeper import Keeper
from tenure._store.engine import Link
from tenure._store.port import Op
from tenure.errors import Unreachable

T = TypeVar("T")


class KeeperLink:
    """Performs operations by a link that is made, used and closed on the keeper's loop."""

    def __init__(self, keeper: Keeper, make: Callable[[], Link]) -> None:
        self._keeper = keeper
        self._make = make
        self._link: Link | None = None

    async def run(self, op: Op[T]) -> T:
        """Perform an operation there and return its answer."""
        return await self._there(self._run(op))

    async def close(self) -> None:
        """Close the connection, if there is one."""
        if self._link is not None and self._keeper.loop is not None:
            await self._there(self._link.close())

    async def _run(self, op: Op[T]) -> T:
        if self._link is None:
            self._link = self._make()
        return await self._link.run(op)

    async def _there(self, work: Coroutine[Any, Any, T]) -> T:
        loop = self._keeper.loop
        if loop is None:
            work.close()
            raise Unreachable("the service thread of this worker has ended")
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop))
