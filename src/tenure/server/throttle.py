"""Limits per access token and per address, so that one client can't starve the others."""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from time import monotonic

from tenure.server.problems import ProblemError


@dataclass(slots=True)
class _Line:
    turns: asyncio.Semaphore
    count: int = field(default=0)


class Turns:
    """Limit how many of an access token's requests run at once. A few more may wait their turn."""

    def __init__(self, at_once: int, *, waiting: int) -> None:
        self._at_once = at_once
        self._most = at_once + waiting
        self._lines: dict[int, _Line] = {}

    @asynccontextmanager
    async def turn(self, token: int) -> AsyncIterator[None]:
        """Wait for a turn, or fail with `too-many-requests`."""
        line = self._lines.setdefault(token, _Line(asyncio.Semaphore(self._at_once)))
        if line.count >= self._most:
            raise ProblemError(
                "too-many-requests",
                f"your access token has {self._most} such requests in progress. Wait for them, "
                "then try again",
            )
        line.count += 1
        try:
            async with line.turns:
                yield
        finally:
            line.count -= 1
            if not line.count:
                del self._lines[token]


class Buckets:
    """Token buckets by address. If there are too many, the least recently used one is dropped."""

    _MOST = 10_000

    def __init__(self, *, burst: int, per_second: float) -> None:
        self._burst = burst
        self._per_second = per_second
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, address: str) -> bool:
        """Take one; return False if the bucket is empty."""
        left = self._level(address)
        self._set(address, left - 1 if left >= 1 else left)
        return left >= 1

    def refund(self, address: str) -> None:
        """Return what was taken."""
        self._set(address, self._level(address) + 1)

    def _level(self, address: str) -> float:
        at, left = self._left.pop(address, (0.0, float(self._burst)))
        return min(left + (monotonic() - at) * self._per_second, float(self._burst))

    def _set(self, address: str, left: float) -> None:
        self._left[address] = monotonic(), left
        if len(self._left) > self._MOST:
            self._left.popitem(last=False)
