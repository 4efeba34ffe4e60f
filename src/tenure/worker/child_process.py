"""A child process, as seen by the parent."""

import asyncio
import contextlib
import json
import os
import resource
import signal
import socket
import sys
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from tenure._clock import boottime
from tenure._model.ids import WorkerId
from tenure._rules.claiming import MAX_PREFETCH
from tenure._runtime.counters import SharedCounters
from tenure._runtime.lease_board import NEVER, BoardEntry, BoardHeartbeats, BoardSummary, LeaseBoard
from tenure._runtime.os_process import out_of_memory_kills, resident
from tenure._services.base import log
from tenure.kinds.shell import guard_process
from tenure.worker.child import ChildOptions
from tenure.worker.ipc import RUN_SCHEDULER, RecoveredJobs
from tenure.worker.processes import kill_session
from tenure.worker.recovery import Death
from tenure.worker.reloader import FileWatcher

_LONGEST = 30.0
# A third of a 3 s lease is 1 s. A busy machine can delay a healthy thread that long, and the
# board's deadlines protect such leases anyway.
_SHORTEST = 3.0
# The longest gap between two checks that counts as silence. A longer gap means that the parent or
# the machine stalled, and says nothing about the child.
_LONGEST_GAP = 0.5


def patience(shortest_lease: float) -> float:
    """Return how long a service thread may stay silent, given the shortest lease held."""
    return min(_LONGEST, max(shortest_lease / 3, _SHORTEST))


class SilenceTimer:
    def __init__(self) -> None:
        self._heartbeat = 0.0
        self._looked_at = 0.0
        self.silent_for: float = 0.0

    def update(self, heartbeat: float, now: float) -> float:
        """Return the seconds since the last new heartbeat, or 0 before the first one."""
        if heartbeat != self._heartbeat or not heartbeat:
            self._heartbeat, self.silent_for = heartbeat, 0.0
        else:
            self.silent_for += min(now - self._looked_at, _LONGEST_GAP)
        self._looked_at = now
        return self.silent_for


# How many ended attempts may be waiting for the database.
_UNSETTLED = 1000
_LAST_WORDS = 1.0
# A guard needs milliseconds, or as long as a process stays in an uninterruptible system call.
_COMMANDS_END_WITHIN = 10.0
_LOOK = 0.01
_SIGNAL_WITHIN = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
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
    load_timeout: float = 60.0
    # A child is replaced after this many jobs, or at this much resident memory (bytes).
    max_jobs: int | None = None
    max_memory: int | None = None
    kinds: list[str] = field(default_factory=list)
    # The lease for every claim, in seconds.
    lease: float | None = None

    @property
    def spare(self) -> float:
        """The part of the grace period reserved for ending the processes."""
        return min(1.0, self.grace / 5)

    @property
    def child_grace(self) -> float:
        return self.grace - self.spare

    @property
    def kill_after(self) -> float:
        return self.grace - self.spare / 2


class ChildProcess:
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
        self._guards_fd = os.memfd_create("tenure-guards")
        self._sheet_fd = None if plan.metrics_port is None else SharedCounters.make()
        self._sheet = None if self._sheet_fd is None else SharedCounters(self._sheet_fd)
        self._ended = False
        self._drains_since: float | None = None
        self._pulse = SilenceTimer()
        self._memory_kills = out_of_memory_kills()

    async def start(self) -> None:
        ours, theirs = socket.socketpair()
        options = ChildOptions(
            target=self._plan.target,
            parent=os.getpid(),
            worker=str(self.worker),
            name=f"{self._plan.name}/{self.number}",
            queues=self._plan.queues,
            kinds=self._plan.kinds,
            slots=self._plan.slots,
            lease=self._plan.lease,
            places=self._places,
            board_fd=self._board_fd,
            channel_fd=theirs.fileno(),
            sheet_fd=self._sheet_fd,
            guards_fd=self._guards_fd,
            grace=self._plan.child_grace,
            until_empty=self._plan.until_empty,
            schedules=self.schedules,
            processes=self._plan.processes,
            is_first=self.number == 1,
            log_successes=self._plan.watched is not None,
            log_level=self._plan.log_level,
            log_format=self._plan.log_format,
        )
        ours_to_pass = (self._board_fd, self._sheet_fd)
        with theirs:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-c",
                "from tenure.worker.child import main; main()",
                options.to_json(),
                pass_fds=[
                    fd for fd in (*ours_to_pass, self._guards_fd, theirs.fileno()) if fd is not None
                ],
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
        # Don't use asyncio streams. Writing to a dying child breaks them, and its last messages are
        # lost.
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

    def _send_soon(self, line: bytes) -> None:
        sending = asyncio.create_task(self._send(line))
        self._sendings.add(sending)
        sending.add_done_callback(self._sendings.discard)

    async def _send(self, line: bytes) -> None:
        async with self._turn:
            if self._channel is not None:
                with contextlib.suppress(OSError):
                    await asyncio.get_running_loop().sock_sendall(self._channel, line)

    async def ended(self) -> Death:
        """Wait for the process to end, kill its session, and return how it ended."""
        if self._process is None:
            raise AssertionError("start it first")
        code = await self._process.wait()
        ended_at = boottime()
        self.kill()
        # A process outside the session may keep the channel open. All messages have arrived by now.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LAST_WORDS):
                await self._reading
        await self._commands_ended()
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

    async def _commands_ended(self) -> None:
        """Wait until the guards of the child's commands have killed them.

        Another worker could otherwise start a job while its command still runs here.
        """
        until = boottime() + _COMMANDS_END_WITHIN
        while guard_process.is_guarding(self._guards_fd):
            if boottime() >= until:
                log.error("child %d: a command can't be killed, its job is released", self.number)
                return
            await asyncio.sleep(_LOOK)

    def _out_of_memory(self, code: int) -> bool:
        if code != -signal.SIGKILL or self.killed is not None:
            return False
        return out_of_memory_kills() > self._memory_kills

    def send_recovered(self, news: RecoveredJobs) -> bool:
        """Send a dead child's jobs to this child's listeners.

        Return False if this child is still loading or is draining.
        """
        if self._channel is None or self.database is None or self.draining:
            return False
        if self.messages["listens"]:
            self._send_soon(news.to_line())
        return True

    def run_scheduler(self) -> bool:
        """Have this child run the schedules from now on.

        Return False if it's ending or on trial.
        """
        if self._channel is None or self.draining or self.probation:
            return False
        self.schedules = True
        self._send_soon(RUN_SCHEDULER)
        return True

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    @property
    def database(self) -> tuple[str, str] | None:
        return (self.messages["url"], self.messages["schema"]) if "url" in self.messages else None

    @property
    def exit_reason(self) -> str | None:
        """How the child exited on its own: drained, overran (grace) or doomed (stuck lease)."""
        left: str | None = self.messages.get("left")
        return left

    @property
    def drains_unrequested(self) -> bool:
        # A signal to all of a worker's processes also reaches the parent, a moment later.
        unrequested = self._drains_since is not None and not self.draining
        return unrequested and boottime() >= (self._drains_since or 0) + _SIGNAL_WITHIN

    @property
    def was_signalled(self) -> bool:
        return "draining" in self.messages

    @property
    def startup_error(self) -> str | None:
        refusal: str | None = self.messages.get("refused")
        return refusal

    @property
    def draining(self) -> bool:
        return self.kill_at != NEVER

    def drain(self, kill_at: float) -> None:
        """Tell the child to drain, and kill it at `kill_at` if it is still running."""
        if not self.draining:
            self.kill_at = kill_at
            self._tell_to_drain()

    def _tell_to_drain(self) -> None:
        # Don't use Process.send_signal(). It may reap the child, and asyncio's wait would miss the
        # exit.
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._process.pid, signal.SIGTERM)

    def kill(self) -> None:
        if self._process is not None and not self._ended:
            kill_session(self._process.pid)

    def entries(self) -> list[BoardEntry]:
        return list(self._board.entries(self.worker))

    def board_summary(self) -> BoardSummary:
        return self._board.summary()

    @property
    def heartbeats(self) -> BoardHeartbeats:
        return self._board.heartbeats

    def spent(self) -> tuple[str, str] | None:
        """Return which limit the child reached (jobs or memory) and a text for the log."""
        jobs, most = self._board.jobs, self._plan.max_memory
        if self._plan.max_jobs is not None and jobs >= self._plan.max_jobs:
            return "max_jobs", f"has run {jobs} jobs"
        if most is not None and self.pid is not None:
            taken = resident(self.pid)
            if taken >= most:
                return "max_memory", f"uses {taken / 2**20:.0f} MiB of memory"
        return None

    def lowered_files(self) -> int | None:
        """Return the open file limit if a handler lowered it after the app loaded."""
        if self.pid is not None and "files" in self.messages:
            with contextlib.suppress(OSError):
                soft, _ = resource.prlimit(self.pid, resource.RLIMIT_NOFILE)
                return soft if soft < self.messages["files"] else None
        return None

    def overdue(self, look: BoardSummary, now: float) -> str | None:
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
        return {} if self._sheet is None else self._sheet.read()

    async def ready(self) -> bool:
        """Wait until the child has loaded the app (True) or ended (False)."""
        await self._heard.wait()
        return self.database is not None

    def close(self) -> None:
        os.close(self._guards_fd)
        self._board.close()
        if self._sheet is not None:
            self._sheet.close()
