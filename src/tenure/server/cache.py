"""A cache that coalesces concurrent requests into one query."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Generic, TypeVar

T = TypeVar("T")
# The lifetime grows with the square of the cost. A 20 ms query is cached for half a second, so
# pages stay live. A 75 ms query is cached for eight seconds, so queries take 1% of the time.
_COST_FACTOR = 1500
# Use the minimum of the last few costs, because a slow query may have had to connect or wait.
_COSTS = 3


class SingleFlightCache(Generic[T]):
    """Caches one value for `fresh` seconds, or for up to `oldest` seconds if its query is slow.

    Concurrent callers share one query.
    """

    def __init__(
        self, query: Callable[[], Awaitable[T]], *, fresh: float, oldest: float | None = None
    ) -> None:
        self._query = query
        self._fresh = fresh
        self._oldest = fresh if oldest is None else oldest
        self._lock = asyncio.Lock()
        self._costs: deque[float] = deque(maxlen=_COSTS)
        self._last: tuple[float, T] | None = None

    async def get(self) -> T:
        """Return the value, from the cache or from a new query."""
        async with self._lock:
            if self._last is None or monotonic() - self._last[0] >= self._lasts():
                started_at = monotonic()
                self._last = started_at, await self._query()
                self._costs.append(monotonic() - started_at)
            return self._last[1]

    def _lasts(self) -> float:
        dear = _COST_FACTOR * min(self._costs) ** 2 if len(self._costs) == _COSTS else 0.0
        return min(max(dear, self._fresh), self._oldest)
