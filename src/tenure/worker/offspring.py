"""One child as its parent sees it: started, watched through the board, ended with its group."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from tenure._model.ids import WorkerId
from tenure._rules.prefetch import LARGEST
from tenure._services.board import NEVER, Board, Entry
from tenure._services.sheet import Sheet
from tenure.job import boottime
from tenure.worker.changes import Changes
from tenure.worker.child import Orders
from tenure.worker.news import TAKE_SCHEDULES, News
from tenure.worker.processes import kill_session

# Ended and not settled yet: as many as this may wait for the database.
_UNSETTLED = 1000
_LAST_WORDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a worker was asked to be."""

    target: str
    queues: list[str] | None
    slots: int
    processes: int
    until_empty: bool
    schedules: bool
    grace: float
    name: str
    log_level: str
    log_format: str
    metrics_host: str
    metrics_port: int | None
    watched: Changes | None

    @property
    def spare(self) -> float:
        """Of the grace, what is kept for the end of the processes themselves."""
        return min(1.0, self.grace / 5)

    @property
    def child_grace(self) -> float:
        """How long a child has to drain."""
        return self.grace - self.spare

    @property
    def kill_after(self) -> float:
        """When a child that has not drained is killed."""
        return self.grace - self.spare / 2


class Offspring:
    """A child process, its board and its channel."""

    def __init__(self, plan: Plan, number: int, *, schedules: bool = False) -> None:
        self._plan = plan
        self.number = number
        self.schedules: bool = schedules
        self.worker: WorkerId = WorkerId(uuid4())
        self.started_at: float = boottime()
        self.kill_at: float = NEVER
        self.killed: str | None = None
        self.on_trial = False
        self._heard = asyncio.Event()
        self.told: dict[str, Any] = {}
        self._process: asyncio.subprocess.Process | None = None
        self._writer: asyncio.StreamWriter | None = None
        places = plan.slots + LARGEST + _UNSETTLED
        self._board_fd = Board.make(places=places)
        self._board = Board(self._board_fd, places=places)
        self._places = places
        self._sheet_fd = None if plan.metrics_port is None else Sheet.make()
        self._sheet = None if self._sheet_fd is None else Sheet(self._sheet_fd)
        self._ended = False

    async def start(self) -> None:
        """Start the process, in a group of its own."""
        ours, theirs = socket.socketpair()
        orders = Orders(
            target=self._plan.target,
            parent=os.getpid(),
            worker=str(self.worker),
            name=f"{self._plan.name}/{self.number}",
            queues=self._plan.queues,
            slots=self._plan.slots,
            places=self._places,
            board_fd=self._board_fd,
            channel_fd=theirs.fileno(),
            sheet_fd=self._sheet_fd,
            grace=self._plan.child_grace,
            until_empty=self._plan.until_empty,
            schedules=self.schedules,
            processes=self._plan.processes,
            is_first=self.number == 1,
            tells=self._plan.watched is not None,
            log_level=self._plan.log_level,
            log_format=self._plan.log_format,
        )
        ours_to_pass = (self._board_fd, self._sheet_fd)
        with theirs:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-c",
                "from tenure.worker.child import main; main()",
                orders.to_json(),
                pass_fds=[fd for fd in (*ours_to_pass, theirs.fileno()) if fd is not None],
                stdin=asyncio.subprocess.DEVNULL,
                start_new_session=True,
            )
        for fd in ours_to_pass:
            if fd is not None:
                os.close(fd)
        if self.draining:
            self._tell_to_drain()
        self._reading = asyncio.create_task(self._read(ours))

    async def _read(self, channel: socket.socket) -> None:
        reader, writer = await asyncio.open_connection(sock=channel)
        self._writer = writer
        try:
            while line := await reader.readline():
                self.told |= json.loads(line)
                self._heard.set()
        finally:
            self._heard.set()
            writer.close()

    async def ended(self) -> int:
        """Return the exit code once the process is gone and its whole session was told to be."""
        if self._process is None:
            raise AssertionError("start it first")
        code = await self._process.wait()
        self.kill()
        # What left the session may keep the channel open: what the child said is here by then.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LAST_WORDS):
                await self._reading
        self._ended = True
        return code

    def tell(self, news: News) -> bool:
        """Tell it what was settled for another, if it has listeners; False if it has not loaded the
        app, or is about to end."""
        if self._writer is None or self.database is None or self.draining:
            return False
        if self.told["listens"]:
            self._writer.write(news.to_line())
        return True

    def take_schedules(self) -> bool:
        """Have it fire schedules from now on; False if it is about to end."""
        if self._writer is None or self.draining or self.on_trial:
            return False
        self.schedules = True
        self._writer.write(TAKE_SCHEDULES)
        return True

    @property
    def database(self) -> tuple[str, str] | None:
        """The address and the schema that its app has, once it has loaded it."""
        return (self.told["url"], self.told["schema"]) if "url" in self.told else None

    @property
    def left(self) -> str | None:
        """How it left, if it did so by its own word: drained, with a handler that overran the
        grace, or doomed by one that kept a lease."""
        left: str | None = self.told.get("left")
        return left

    @property
    def refusal(self) -> str | None:
        """Why it could not start, if it said so."""
        refusal: str | None = self.told.get("refused")
        return refusal

    @property
    def draining(self) -> bool:
        """Whether it was told to end."""
        return self.kill_at != NEVER

    def drain(self, kill_at: float) -> None:
        """Tell it to drain; by then it is ended."""
        if not self.draining:
            self.kill_at = kill_at
            self._tell_to_drain()

    def _tell_to_drain(self) -> None:
        # Not by the Process itself: that would reap it, and asyncio's own wait would miss it.
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._process.pid, signal.SIGTERM)

    def kill(self) -> None:
        """End it and everything that was started in its session now."""
        if self._process is not None and not self._ended:
            kill_session(self._process.pid)

    def entries(self) -> list[Entry]:
        """The leases it holds."""
        return list(self._board.entries(self.worker))

    def look(self) -> tuple[float, bool]:
        """The instant by which its first running handler must have ended, and whether one is out
        of time and has not."""
        return self._board.look()

    def counts(self) -> dict[str, Any]:
        """What it has counted, as far as it has told."""
        return {} if self._sheet is None else self._sheet.read()

    async def ready(self) -> bool:
        """Return once it has loaded the app, or ended before it could."""
        await self._heard.wait()
        return self.database is not None

    def close(self) -> None:
        """Let go of the memory that was shared."""
        self._board.close()
        if self._sheet is not None:
            self._sheet.close()
