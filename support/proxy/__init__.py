"""A TCP proxy with faults: silence, one-way silence, delay, resets, answers that are lost."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from random import Random
from typing import TYPE_CHECKING, Self, TypeVar
from urllib.parse import urlsplit, urlunsplit

from support.proxy.faults import Cut, Faults
from support.proxy.link import Link

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from support.proxy.faults import Towards

_T = TypeVar("_T")

COMMIT_CUT = "answer to a COMMIT lost"
QUERY_CUT = "answer to a query lost"
RESET = "connection reset"


class Proxy:
    """Stands between a worker and its database, on a thread of its own.

    While it is cut, connections stay open at both ends, new ones are accepted and hear
    nothing, and an end is not passed on. Bytes on their way arrive after the fix, as
    late as that may be. Choices are made by the generator that is given.
    """

    def __init__(self, url: str, rng: Random | None = None) -> None:
        self._target = urlsplit(url)
        self._host, self._at = self._target.hostname or "127.0.0.1", self._target.port or 5432
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._faults = Faults(rng or Random(0))  # noqa: S311 - chooses faults, keeps no secret
        # In the order in which they came: the same choices fall on the same connections.
        self._links: dict[Link, None] = {}
        self._connecting: set[asyncio.Task[None]] = set()
        self._waiting: list[Link] = []
        self._port = 0

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(10)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def url(self) -> str:
        """The database's URL by way of this proxy."""
        user = self._target.username or ""
        return urlunsplit(self._target._replace(netloc=f"{user}@127.0.0.1:{self._port}"))

    @property
    def counts(self) -> Counter[str]:
        """How many connections were really reset or cut, by kind."""
        return Counter(self._faults.counts)

    def lost(self, kind: str) -> int:
        """Count the answers of this kind that the server gave and no client received."""
        return sum(self.counts[f"{kind}, {how}"] for how in ("reset", "silence"))

    @property
    def connections(self) -> int:
        """How many there are now."""
        return len(self._links)

    @property
    def held(self) -> int:
        """On how many connections something waits now that should have passed."""
        return self._on_loop(lambda: sum(link.holds for link in self._links))

    def cut(self) -> None:
        """Let nothing pass from now on, in either direction."""
        self._on_loop(lambda: setattr(self._faults, "is_cut", True))

    def half_open(self, towards: Towards = "server") -> None:
        """Let pass only what goes towards this side; the rest is held up."""
        self._on_loop(lambda: setattr(self._faults, "only", towards))

    def delay(self, seconds: float, jitter: float = 0.0) -> None:
        """Hold up all that passes by this, and up to `jitter` more; order is kept."""
        self._on_loop(lambda: self._set_delay(seconds, jitter))

    def slow(self, bytes_per_second: float) -> None:
        """Let no more than this pass in each direction of each connection."""
        self._on_loop(lambda: setattr(self._faults, "rate", bytes_per_second))

    def restore(self) -> None:
        """Let everything pass again, first what was held up; nothing is to be cut any more."""
        self._on_loop(self._restore)

    def forget(self) -> None:
        """Let nothing pass on the connections that there are, ever; new ones are not touched."""
        self._on_loop(self._forget)

    def reset(self, share: float = 1.0) -> int:
        """Reset the connections that there are, or a share of them; return how many."""
        return self._on_loop(lambda: self._reset(share))

    def cut_after_commit(self, count: int = 1, share: float = 1.0) -> None:
        """Let the next COMMITs reach the server and lose its answers with the connection.

        The client hears an RST, or nothing ever again. Of the COMMITs, a share is struck.
        """
        self._arm(Cut(COMMIT_CUT, count, share, commits=True))

    def cut_after_query(self, count: int = 1, share: float = 1.0, containing: bytes = b"") -> None:
        """The same for any request, or for those with these bytes in them."""
        self._arm(Cut(QUERY_CUT, count, share, commits=False, containing=containing))

    def disarm(self) -> None:
        """Cut no more answers; whatever else is in force stays."""
        self._on_loop(self._faults.cuts.clear)

    def _arm(self, cut: Cut) -> None:
        self._on_loop(lambda: self._faults.cuts.append(cut))

    def _on_loop(self, work: Callable[[], _T]) -> _T:
        async def call() -> _T:
            return work()

        return asyncio.run_coroutine_threadsafe(call(), self._loop).result(10)

    def _set_delay(self, seconds: float, jitter: float) -> None:
        self._faults.delay, self._faults.jitter = seconds, jitter

    def _restore(self) -> None:
        self._faults.restore()
        for link in list(self._links):
            link.pump()
        for link in self._waiting:
            self._connect(link)
        self._waiting.clear()

    def _forget(self) -> None:
        for link in self._links:
            link.is_forgotten = True
        self._waiting.clear()

    def _reset(self, share: float) -> int:
        struck = [link for link in self._links if self._faults.rng.random() < share]
        for link in struck:
            link.reset()
        self._faults.counts[RESET] += len(struck)
        return len(struck)

    async def _start(self) -> None:
        self._server = await self._loop.create_server(self._accept, "127.0.0.1", 0, backlog=1024)
        self._port = self._server.sockets[0].getsockname()[1]

    async def _stop(self) -> None:
        self._server.close()
        for task in self._connecting:
            task.cancel()
        await asyncio.gather(*self._connecting, return_exceptions=True)
        self._faults.restore()
        for link in list(self._links):
            link.reset()
        for _ in range(10):
            await asyncio.sleep(0)

    def _accept(self) -> asyncio.Protocol:
        link = Link(self._loop, self._faults, lambda link: self._links.pop(link, None))
        self._links[link] = None
        if self._faults.is_cut:
            self._waiting.append(link)
        else:
            self._connect(link)
        return link.client

    def _connect(self, link: Link) -> None:
        task = self._loop.create_task(self._reach(link))
        self._connecting.add(task)
        task.add_done_callback(self._connecting.discard)

    async def _reach(self, link: Link) -> None:
        try:
            await self._loop.create_connection(lambda: link.server, self._host, self._at)
        except OSError:
            link.reset()
            return
        if link.client.is_over:
            link.server.reset()
