"""One answer of the database for all who ask within a while: what is dear is not asked for each."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Generic, TypeVar

T = TypeVar("T")
# What an answer costs decides how long it is good, by its square: half a second where it takes
# 20 ms, so that a page is live; eight where it takes 75, so that asking is a hundredth of the time.
_COST_FACTOR = 1500
# The least of so many counts: one that was slow had to connect first, or to wait for its turn.
_COSTS = 3


class SingleFlightCache(Generic[T]):
    """The last answer, and the next when that is too old: after `fresh` seconds, or more if answers
    are dear, up to `oldest`. Whoever comes while one is under way has the same."""

    def __init__(
        self, ask: Callable[[], Awaitable[T]], *, fresh: float, oldest: float | None = None
    ) -> None:
        self._ask = ask
        self._fresh = fresh
        self._oldest = fresh if oldest is None else oldest
        self._asking = asyncio.Lock()
        self._costs: deque[float] = deque(maxlen=_COSTS)
        self._last: tuple[float, T] | None = None

    async def get(self) -> T:
        """An answer that was asked for lately."""
        async with self._asking:
            if self._last is None or monotonic() - self._last[0] >= self._lasts():
                asked_at = monotonic()
                self._last = asked_at, await self._ask()
                self._costs.append(monotonic() - asked_at)
            return self._last[1]

    def _lasts(self) -> float:
        dear = _COST_FACTOR * min(self._costs) ** 2 if len(self._costs) == _COSTS else 0.0
        return min(max(dear, self._fresh), self._oldest)
