"""One connection through the proxy: two ends, and a lane for each direction."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections import deque
from typing import TYPE_CHECKING

from support.proxy.wire import is_answer

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.proxy.faults import Cut, Faults, Towards

_MOST_HELD = 262144
_ANSWER_WITHIN = 1.0
_AT_ONCE = struct.pack("ii", 1, 0)


class Lane:
    """What was read at one end waits here until it may be written at the other, in order."""

    def __init__(self, link: Link, towards: Towards) -> None:
        self._link = link
        self._towards = towards
        self._waiting: deque[tuple[float, bytes]] = deque()
        self._held = 0
        self._last_due = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self.source: End | None = None
        self.target: End | None = None
        self.is_full = False
        self.is_shut = False

    def put(self, data: bytes) -> None:
        """Take what was read; nothing at all is the end."""
        if self.is_shut:
            return
        faults = self._link.faults
        if data and not self._waiting and not faults.holds_up and (target := self._writable()):
            target.write(data)
            return
        # Where nothing waits, a fix has released what was due later than now.
        before = self._last_due if self._waiting else 0.0
        due = faults.due(self._link.loop.time(), before, len(data))
        self._last_due = due
        self._waiting.append((due, data))
        self._held += len(data)
        if self._held > _MOST_HELD and self.source is not None:
            self.source.transport.pause_reading()
        self.pump()

    @property
    def holds(self) -> bool:
        """Whether anything waits here."""
        return bool(self._waiting)

    def pump(self) -> None:
        """Write what is due and may pass."""
        while self._waiting and (target := self._writable()):
            due, data = self._waiting[0]
            wait = due - self._link.loop.time()
            if wait > 0 and self._link.faults.holds_up:
                self._timer = self._timer or self._link.loop.call_later(wait, self._tick)
                return
            self._waiting.popleft()
            self._held -= len(data)
            if data:
                target.write(data)
            else:
                target.close()
        if self._held <= _MOST_HELD and self.source is not None:
            self.source.transport.resume_reading()

    def shut(self) -> None:
        """Drop what waits and all that comes."""
        self.is_shut = True
        self._waiting.clear()
        if self._timer is not None:
            self._timer.cancel()

    def _tick(self) -> None:
        self._timer = None
        self.pump()

    def _writable(self) -> asyncio.Transport | None:
        if self.target is None or self.is_full or not self._link.passes(self._towards):
            return None
        return self.target.transport


class End(asyncio.Protocol):
    """A socket of a link: hands what it reads to its link, and is written to by a lane."""

    transport: asyncio.Transport

    def __init__(self, link: Link, lane_in: Lane, lane_out: Lane) -> None:
        self._link, self._in, self._out = link, lane_in, lane_out
        self.is_over = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - for the type checker
        self.transport = transport
        self._in.source, self._out.target = self, self
        self._link.joined(self)
        self._out.pump()

    def data_received(self, data: bytes) -> None:
        self._link.heard(self, data)

    def pause_writing(self) -> None:
        self._out.is_full = True

    def resume_writing(self) -> None:
        self._out.is_full = False
        self._out.pump()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        self.is_over = True
        self._out.shut()
        self._in.put(b"")
        self._link.left()

    def reset(self) -> None:
        """Close by RST, whatever has not been sent yet."""
        if not self.is_over:
            there = self.transport.get_extra_info("socket")
            there.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
            self.transport.abort()


class Link:
    """Joins a client to the server, and knows the faults planned for this connection."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, faults: Faults, over: Callable[[Link], None]
    ) -> None:
        self.loop, self.faults, self._over = loop, faults, over
        self.is_forgotten = False
        self._to_server, self._to_client = Lane(self, "server"), Lane(self, "client")
        self.client = End(self, self._to_server, self._to_client)
        self.server = End(self, self._to_client, self._to_server)
        self._ends: list[End] = []
        self._doom: Cut | None = None

    def passes(self, towards: Towards) -> bool:
        """Whether anything passes in this direction now."""
        faults = self.faults
        return not (self.is_forgotten or faults.is_cut) and faults.only in (None, towards)

    @property
    def holds(self) -> bool:
        """Whether anything waits, in either direction."""
        return self._to_server.holds or self._to_client.holds

    def joined(self, end: End) -> None:
        self._ends.append(end)

    def left(self) -> None:
        if all(end.is_over for end in self._ends):
            self._to_client.shut()
            self._to_server.shut()
            self._over(self)

    def heard(self, end: End, data: bytes) -> None:
        """Pass on what an end said, unless the connection is to be cut by now."""
        if end is self.server:
            if self._doom is None:
                self._to_client.put(data)
            elif is_answer(data, committed=self._doom.commits):
                self._cut(self._doom, answered=True)
            return
        if self._doom is None and self.faults.cuts and (cut := self.faults.strike(data)):
            self._doom = cut
            patience = _ANSWER_WITHIN + self.faults.delay + self.faults.jitter
            self.loop.call_later(patience, self._cut, cut)
        self._to_server.put(data)

    def pump(self) -> None:
        """Let go of what may pass now."""
        self._to_server.pump()
        self._to_client.pump()

    def reset(self) -> None:
        """Both ends hear an RST."""
        for end in self._ends:
            end.reset()

    def _cut(self, cut: Cut, *, answered: bool = False) -> None:
        """The client hears an RST, or never anything again; the server is rid of it at once."""
        if self.client.is_over or self._to_client.is_shut:
            return
        silent = self.faults.rng.random() < 0.5
        how = "silence" if silent else "reset"
        self.faults.counts[f"{cut.kind}, {how}" + ("" if answered else ", no answer came")] += 1
        self._to_client.shut()
        if silent:
            self._to_server.shut()
            if self.server in self._ends:
                self.server.reset()
        else:
            self.reset()
