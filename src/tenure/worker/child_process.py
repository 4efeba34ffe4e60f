"""One child as its parent sees it."""

import asyncio
import contextlib
import json
import os
import resource
import signal
import socket
import sys
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from tenure._clock import boottime
from tenure._model.ids import WorkerId
from tenure._rules.claiming import MAX_PREFETCH
from tenure._runtime.counters import SharedCounters
from tenure._runtime.lease_board import NEVER, BoardEntry, BoardHeartbeats, BoardSummary, LeaseBoard
from tenure._runtime.os_process import out_of_memory_kills, resident
from tenure.worker.child import ChildOptions
from tenure.worker.ipc import RUN_SCHEDULER, RecoveredJobs
from tenure.worker.processes import kill_session
from tenure.worker.recovery import Death
from tenure.worker.reloader import FileWatcher

_LONGEST = 30.0
# A third of a lease of 3 s is 1 s: a busy machine can keep an innocent thread waiting that
# long, and the deadlines on the board guard such leases anyway.
_SHORTEST = 3.0
# Between two looks of the parent: a parent that was itself not scheduled, or a machine that was
# suspended, says nothing about the child.
_LONGEST_GAP = 0.5


def patience(shortest_lease: float) -> float:
    """How long a service thread may be silent while the shortest lease that is held is this."""
    return min(_LONGEST, max(shortest_lease / 3, _SHORTEST))


class SilenceTimer:
    """How long the parent has looked at a heartbeat that did not change."""

    def __init__(self) -> None:
        self._heartbeat = 0.0
        self._looked_at = 0.0
        self.silent_for: float = 0.0

    def update(self, heartbeat: float, now: float) -> float:
        """Record one look, return the seconds of silence. None count before the first heartbeat:
        until then the limit on loading holds."""
        if heartbeat != self._heartbeat or not heartbeat:
            self._heartbeat, self.silent_for = heartbeat, 0.0
        else:
            self.silent_for += min(now - self._looked_at, _LONGEST_GAP)
        self._looked_at = now
        return self.silent_for


# Ended and not settled yet: as many as this may wait for the database.
_UNSETTLED = 1000
_LAST_WORDS = 1.0
_SIGNAL_WITHIN = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
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
    watched: FileWatcher | None
    # How long a child may take to load the app.
    load_timeout: float = 60.0
    # After as many jobs, or from as many bytes of resident memory on, a child is replaced.
    max_jobs: int | None = None
    max_memory: int | None = None

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


class ChildProcess:
    """A child process, its board and its channel."""

    def __init__(self, plan: WorkerOptions, number: int, *, schedules: bool = False) -> None:
        self._plan = plan
        self.number = number
        self.schedules: bool = schedules
        self.worker: WorkerId = WorkerId(uuid4())
        self.started_at: float = boottime()
        self.kill_at: float = NEVER
        self.killed: str | None = None
        self.recycled: str | None = None
        self.probation = False
        self._heard = asyncio.Event()
        self.gone: asyncio.Event = asyncio.Event()
        self.messages: dict[str, Any] = {}
        self._process: asyncio.subprocess.Process | None = None
        self._channel: socket.socket | None = None
        self._sendings: set[asyncio.Task[None]] = set()
        self._turn = asyncio.Lock()
        places = plan.slots + MAX_PREFETCH + _UNSETTLED
        self._board_fd = LeaseBoard.make(places=places)
        self._board = LeaseBoard(self._board_fd, places=places)
        self._places = places
        self._sheet_fd = None if plan.metrics_port is None else SharedCounters.make()
        self._sheet = None if self._sheet_fd is None else SharedCounters(self._sheet_fd)
        self._ended = False
        self._drains_since: float | None = None
        self._pulse = SilenceTimer()
        self._memory_kills = out_of_memory_kills()

    async def start(self) -> None:
        """Start the process, in a group of its own."""
        ours, theirs = socket.socketpair()
        orders = ChildOptions(
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
        """Hear what the child says until it is gone. Not by streams: what is written to a child
        that dies just then breaks those, and its last words would be lost."""
        loop = asyncio.get_running_loop()
        channel.setblocking(False)
        self._channel = channel
        begun = b""
        try:
            with contextlib.suppress(OSError):
                while read := await loop.sock_recv(channel, 65536):
                    *lines, begun = (begun + read).split(b"\n")
                    for line in lines:
                        self._hear(json.loads(line))
        finally:
            self._heard.set()
            self._channel = None
            for sending in self._sendings:
                sending.cancel()
            channel.close()

    def _hear(self, message: dict[str, Any]) -> None:
        self.messages |= message
        if "draining" in message and self._drains_since is None:
            self._drains_since = boottime()
        self._heard.set()

    def _say(self, line: bytes) -> None:
        sending = asyncio.create_task(self._send(line))
        self._sendings.add(sending)
        sending.add_done_callback(self._sendings.discard)

    async def _send(self, line: bytes) -> None:
        async with self._turn:
            if self._channel is not None:
                with contextlib.suppress(OSError):
                    await asyncio.get_running_loop().sock_sendall(self._channel, line)

    async def ended(self) -> Death:
        """Say how it ended once the process is gone and its whole session was told to be."""
        if self._process is None:
            raise AssertionError("start it first")
        code = await self._process.wait()
        ended_at = boottime()
        self.kill()
        # What left the session may keep the channel open: what the child said is here by then.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LAST_WORDS):
                await self._reading
        self._ended = True
        self.gone.set()
        service = self._board.heartbeats.service
        return Death(
            code=code,
            left=self.exit_reason,
            killed=self.killed,
            service_heartbeat_age=ended_at - service if service else NEVER,
            ended_at=ended_at,
            out_of_memory=self._out_of_memory(code),
        )

    def _out_of_memory(self, code: int) -> bool:
        """Whether the kernel killed it for want of memory: it counts one more."""
        if code != -signal.SIGKILL or self.killed is not None:
            return False
        return out_of_memory_kills() > self._memory_kills

    def tell(self, news: RecoveredJobs) -> bool:
        """Tell it what was settled for another, if it has listeners; False if it has not loaded the
        app, or is about to end."""
        if self._channel is None or self.database is None or self.draining:
            return False
        if self.messages["listens"]:
            self._say(news.to_line())
        return True

    def run_scheduler(self) -> bool:
        """Have it fire schedules from now on; False if it is about to end."""
        if self._channel is None or self.draining or self.probation:
            return False
        self.schedules = True
        self._say(RUN_SCHEDULER)
        return True

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    @property
    def database(self) -> tuple[str, str] | None:
        """The address and the schema that its app has, once it has loaded it."""
        return (self.messages["url"], self.messages["schema"]) if "url" in self.messages else None

    @property
    def exit_reason(self) -> str | None:
        """How it left, if it did so by its own word: drained, with a handler that overran the
        grace, or doomed by one that kept a lease."""
        left: str | None = self.messages.get("left")
        return left

    @property
    def drains_unasked(self) -> bool:
        """Whether a signal that its parent did not send made it drain. One that goes to all
        processes of a worker reaches the parent as well, a moment later."""
        unasked = self._drains_since is not None and not self.draining
        return unasked and boottime() >= (self._drains_since or 0) + _SIGNAL_WITHIN

    @property
    def was_signalled(self) -> bool:
        """Whether a signal made it drain, whoever sent it."""
        return "draining" in self.messages

    @property
    def startup_error(self) -> str | None:
        """Why it could not start, if it said so."""
        refusal: str | None = self.messages.get("refused")
        return refusal

    @property
    def draining(self) -> bool:
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

    def entries(self) -> list[BoardEntry]:
        return list(self._board.entries(self.worker))

    def board_summary(self) -> BoardSummary:
        """What its board says of its leases."""
        return self._board.summary()

    @property
    def heartbeats(self) -> BoardHeartbeats:
        """When its event loop and its service thread last moved."""
        return self._board.heartbeats

    def spent(self) -> tuple[str, str] | None:
        """Whether it has run as many jobs, or takes as much memory, as one child may: which, and in
        words."""
        jobs, most = self._board.jobs, self._plan.max_memory
        if self._plan.max_jobs is not None and jobs >= self._plan.max_jobs:
            return "max_jobs", f"has run {jobs} jobs"
        if most is not None and self.pid is not None:
            taken = resident(self.pid)
            if taken >= most:
                return "max_memory", f"takes {taken / 2**20:.0f} MiB of memory"
        return None

    def lowered_files(self) -> int | None:
        """The limit of open files that a handler has set below the one that there was when the app
        was loaded; None if none has."""
        if self.pid is not None and "files" in self.messages:
            with contextlib.suppress(OSError):
                soft, _ = resource.prlimit(self.pid, resource.RLIMIT_NOFILE)
                return soft if soft < self.messages["files"] else None
        return None

    def overdue(self, look: BoardSummary, now: float) -> str | None:
        """Why it must be killed now, if it must."""
        silent_for = self._pulse.update(self.heartbeats.service, now)
        if now >= look.earliest:
            return "lease"
        if now >= self.kill_at:
            return "grace"
        if silent_for >= patience(look.shortest):
            return "frozen"
        if not self.messages and now >= self.started_at + self._plan.load_timeout:
            return "loading"
        return None

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
