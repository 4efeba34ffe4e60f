"""Run handlers in their own processes, for `process=True` and for suspects.

A handler in its own process can be killed without affecting others, and a crash takes down only
that process. The child holds, renews and settles the lease.
"""

import asyncio
import contextlib
import math
import os
import signal
import socket
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from tenure._clock import boottime
from tenure._model.outcome import Failed, Loss, Lost, Outcome, Released
from tenure._rules import formatting
from tenure._runtime import execution, os_process, process_protocol
from tenure._runtime.execution import OnFinished
from tenure._runtime.held_leases import HeldLease, StopReason
from tenure._runtime.lease_board import Phase
from tenure._runtime.os_process import out_of_memory_kills
from tenure._services.base import log, log_fields
from tenure.errors import Error

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

_LONGEST_MESSAGE = 64 * 1024 * 1024
_LAST_WORDS = 1.0
# If a process dies this soon after another job ended, that job may be the cause.
_AFTERMATH = 1.0
_IDLE = 60.0
_SUSPECTS_PER_CORE = 2
_AFTER_NO_START = timedelta(seconds=10)
# Why a handler's process ended, as counted by a metric: it was no longer needed, could not load the
# app, was stopped with its handler, or died.
ENDS = (
    *("idle", "replaced", "closed", "refused"),
    *(why.name.lower() for why in StopReason),
    *("memory_limit", "out_of_memory", "signal", "exit"),
)


class CannotStart(Exception):
    """A process ended before running the handler. This isn't the job's fault."""


class ProcessExecutor:
    """Run handlers in processes. Each process is kept for up to a minute to run the next job.

    Only a few processes start at a time, and only a few suspects run at a time. After a crash,
    every job that was running becomes a suspect, and starting a process for each of them could
    exhaust memory. While jobs wait, their leases are renewed.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        keep: int,
        confirm: "Callable[[HeldLease], Awaitable[bool]] | None" = None,
    ) -> None:
        self._command = command
        # Copy both now, because a handler may change them, and then no process could load the app.
        self._environment = dict(os.environ)
        self._directory = _directory()
        self._keep = keep
        self._confirm = confirm
        self._idle: list[_HandlerProcess] = []
        cores = os.cpu_count() or 1
        self._starts = asyncio.Semaphore(max(1, cores // 2))
        self._suspects = asyncio.Semaphore(_SUSPECTS_PER_CORE * cores)
        self._tasks: set[asyncio.Task[None]] = set()
        # Ended processes by reason, each counted once.
        self.ended: Counter[str] = Counter(dict.fromkeys(ENDS, 0))

    def start(self, held: HeldLease, on_finished: OnFinished) -> "ProcessRun":
        running = ProcessRun(held, asyncio.get_running_loop())
        task = asyncio.create_task(self._run(running, on_finished))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return running

    async def _run(self, running: "ProcessRun", on_finished: OnFinished) -> None:
        if not running.held.suspect:
            await self._run_in_turn(running, on_finished)
            return
        try:
            async with asyncio.timeout(None) as running.patience:
                await self._suspects.acquire()
        except TimeoutError:
            on_finished(running.held, _not_begun(running.held), None)
            return
        try:
            await self._run_in_turn(running, on_finished)
        finally:
            self._suspects.release()

    async def _run_in_turn(self, running: "ProcessRun", on_finished: OnFinished) -> None:
        held = running.held
        outcome: Outcome | None = None
        excerpt: str | None = None
        try:
            async with asyncio.timeout(None) as running.patience:
                process = await self._free(held)
                running.process = process
                begins = await self._may_begin(held)
            if not begins:
                outcome = _not_begun(held)
            else:
                if held.stopping is not None:
                    process.kill()
                held.begin(Phase.IN_PROCESS, boottime())
                outcome, excerpt = await process.run(held)
        except TimeoutError:
            # It had to stop before a process became available.
            outcome = _not_begun(held)
        except CannotStart as error:
            log.error(
                "job %s: %s; trying again later, attempt not charged",
                held.job.id,
                error,
                extra=log_fields(held.job),
            )
            # Release the job instead of snoozing it. No handler ran, so a suspect remains a
            # suspect.
            outcome = Released(error=Error("CannotStart", str(error)), after=_AFTER_NO_START)
        except (OSError, ValueError, asyncio.IncompleteReadError) as error:
            log.warning(
                "job %s: its process failed: %s", held.job.id, error, extra=log_fields(held.job)
            )
        except Exception as defect:  # noqa: BLE001 - a defect must not keep a slot and a lease
            outcome = execution.outcome_of_internal_error(defect, held.task)
            if running.process is not None:
                running.process.kill()
        stopped, over_at = held.stopping, boottime()
        try:
            if running.process is not None:
                # A stopped handler may have left subprocesses behind.
                broken = outcome is None or stopped is not None
                # Memory this handler still uses would count against the next one.
                broken = broken or held.task.memory is not None
                why = _why_over(held, stopped, outcome)
                await self._put_back(running.process, broken=broken, why=why)
        finally:
            if outcome is None and stopped is not None:
                outcome = execution.outcome_of_stop(stopped, held.time_limit)
            if outcome is None:
                outcome = _lost(running.process, over_at)
            on_finished(held, outcome, excerpt)

    async def _may_begin(self, held: HeldLease) -> bool:
        if not held.confirm or self._confirm is None:
            return True
        return await self._confirm(held)

    async def _put_back(self, process: "_HandlerProcess", *, broken: bool, why: str | None) -> None:
        if broken or process.ended or len(self._idle) >= self._keep:
            await self._end(process, why)
        else:
            process.idle_from = boottime()
            self._idle.append(process)
            asyncio.get_running_loop().call_later(_IDLE, self._end_idle)

    async def _end(self, process: "_HandlerProcess", why: str | None) -> None:
        """End a process and count it. If `why` is None, it died on its own."""
        await process.end()
        self.ended[why or process.died_of] += 1

    def _end_idle(self) -> None:
        until = boottime() - _IDLE
        for process in [process for process in self._idle if process.idle_from <= until]:
            self._idle.remove(process)
            ending = asyncio.get_running_loop().create_task(self._end(process, "idle"))
            self._tasks.add(ending)
            ending.add_done_callback(self._tasks.discard)

    async def _free(self, held: HeldLease) -> "_HandlerProcess":
        """Return an idle or new process. Raise TimeoutError if the job must stop first."""
        process = self._take_idle(held)
        if process is None:
            async with self._starts:
                if held.stopping is not None:
                    raise TimeoutError
                process = self._take_idle(held) or await self._new()
        return process

    def _take_idle(self, held: HeldLease) -> "_HandlerProcess | None":
        """Return an idle process, and drop any that have died.

        If a job is a suspect for the second time, it never gets a process that the previous job may
        still kill, because that death would be blamed on the suspect. A first-time suspect can get
        any process, because there may be many such jobs, and most are innocent.
        """
        for dead in [process for process in self._idle if process.gone]:
            self._idle.remove(dead)
            dead.close()
            self.ended[dead.died_of] += 1
        again = held.suspect and (held.job.losses > 0 or held.job.worker_losses > 1)
        until = boottime() - (_AFTERMATH if again else 0)
        fit = [process for process in self._idle if process.idle_from <= until]
        if not fit:
            return None
        self._idle.remove(fit[-1])
        return fit[-1]

    async def _new(self) -> "_HandlerProcess":
        try:
            process = await self._start()
        except Exception as error:
            # Out of descriptors, memory or processes: no handler has run.
            raise CannotStart(f"no process for its handler: {error}") from error
        loaded: bool | None = None
        try:
            loaded = await process.loaded()
        finally:
            if not loaded:
                # None means that the job had to stop while the process was loading the app.
                await self._end(process, "closed" if loaded is None else "refused")
        if not loaded:
            raise CannotStart("the process for its handler could not load the app")
        return process

    async def _start(self) -> "_HandlerProcess":
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                process = await asyncio.create_subprocess_exec(
                    *self._command,
                    str(os.getpid()),
                    str(theirs.fileno()),
                    pass_fds=[theirs.fileno()],
                    stdin=asyncio.subprocess.DEVNULL,
                    process_group=0,
                    cwd=self._directory,
                    env=self._environment,
                )
            reader, writer = await asyncio.open_connection(sock=ours, limit=_LONGEST_MESSAGE)
        except BaseException:
            ours.close()
            raise
        return _HandlerProcess(process, reader, writer)

    async def close(self) -> None:
        for process in self._idle:
            await self._end(process, "closed")
        self._idle.clear()


class _HandlerProcess:
    def __init__(
        self,
        process: asyncio.subprocess.Process,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self._process = process
        self._reader = reader
        self._writer = writer
        self._outlived = asyncio.create_task(self._end_group())
        self.ended = False
        self.idle_from = -math.inf
        # Read it once per process, because reading it for each job took longer than a short
        # handler.
        self.kills_before = out_of_memory_kills()

    @property
    def code(self) -> int | None:
        return self._process.returncode

    @property
    def out_of_memory(self) -> bool:
        return self.code == -signal.SIGKILL and out_of_memory_kills() > self.kills_before

    @property
    def died_of(self) -> str:
        """The reason that is counted for a process that died on its own."""
        if self.out_of_memory:
            return "out_of_memory"
        return "signal" if (self.code or 0) < 0 else "exit"

    async def loaded(self) -> bool:
        """Return True once the process has loaded the app, or False if it ended first."""
        with contextlib.suppress(OSError):  # a broken connection: it has ended
            return bool(await self._reader.readline())
        return False

    async def run(self, held: HeldLease) -> tuple[Outcome | None, str | None]:
        """Run one job; None if the process died while running it."""
        self.send(process_protocol.run(held.job, held.lease))
        if held.lease_state.cancel_requested:
            # The cancel was requested while the job was waiting for this process.
            self.send({"cancel": True})
        while line := await self._reader.readline():
            message = process_protocol.decode(line)
            if "extended" in message:
                seconds = message["extend"]
                extend = None if seconds is None else timedelta(seconds=seconds)
                held.extend(message["extended"], extend)
            else:
                return process_protocol.read_ended(message, held.lease_state)
        self.ended = True
        return None, None

    def send(self, message: dict[str, object]) -> None:
        if not self._writer.is_closing():
            self._writer.write(process_protocol.encode(message))

    @property
    def gone(self) -> bool:
        return self._outlived.done()

    def kill(self) -> None:
        """Kill the process and its group, including programs the handler started."""
        self.ended = True
        # Don't use Process.kill(). It may reap the process, and asyncio's own wait would miss the
        # exit.
        if self._process.returncode is None:
            os_process.kill(self._process.pid)

    async def end(self) -> None:
        self.kill()
        self.close()
        await asyncio.shield(self._outlived)

    def close(self) -> None:
        self._writer.close()

    async def _end_group(self) -> None:
        # Wait for the process itself, because a forked copy may keep the channel open after it
        # dies.
        await self._process.wait()
        # The group's number may be reused once it is gone, so kill only groups in our own session.
        if self._process.pid in os_process.groups(os.getsid(0)):
            os_process.kill(self._process.pid)
        # A copy in its own session survives, so close the channel after the last messages arrive.
        asyncio.get_running_loop().call_later(_LAST_WORDS, self._writer.transport.abort)


def _directory() -> str | None:
    try:
        return str(Path.cwd())
    except OSError:
        return None


def _not_begun(held: HeldLease) -> Outcome:
    """Return the outcome of a job that had to stop before it started."""
    if held.stopping is None:
        return Released()
    return execution.outcome_of_stop(held.stopping, held.time_limit)


def _why_over(held: HeldLease, stopped: StopReason | None, outcome: Outcome | None) -> str | None:
    """Return why a process isn't reused after this outcome, or None if it died on its own."""
    if stopped is not None:
        return stopped.name.lower()
    if outcome is None:
        return None
    refused = isinstance(outcome, Failed) and outcome.error.type == MemoryError.__qualname__
    return "memory_limit" if refused and held.task.memory is not None else "replaced"


def _lost(process: "_HandlerProcess | None", died_at: float) -> Lost:
    # The job ran there alone, so it caused the loss, unless another job had just ended there.
    if process is None or process.code is None:
        return Lost(Loss.OWN, Error("ProcessDied", "its own process died"))
    how = formatting.describe(process.code)
    after_another = died_at - process.idle_from < _AFTERMATH
    when = ", right after another job" if after_another else ""
    error = Error("ProcessDied", f"its own process died: {how}{when}")
    if process.out_of_memory:
        killed = f"its own process was killed: the system was out of memory{when}"
        error = Error("OutOfMemory", killed)
    return Lost(Loss.SHARED if after_another else Loss.OWN, error)


class ProcessRun:
    def __init__(self, held: HeldLease, loop: asyncio.AbstractEventLoop) -> None:
        self.held = held
        self.process: _HandlerProcess | None = None
        self.patience: asyncio.Timeout | None = None
        self._loop = loop

    def stop(self, why: StopReason) -> None:
        """Have the process stop the handler. If it has no process yet, stop waiting for one."""
        self._later(lambda process: process.send({"stop": why.name}), give_up=True)

    def cancel_requested(self) -> None:
        self._later(lambda process: process.send({"cancel": True}))

    def kill(self) -> bool:
        self._later(lambda process: process.kill(), give_up=True)
        return True

    def _later(self, act: "Callable[[_HandlerProcess], None]", *, give_up: bool = False) -> None:
        def now() -> None:
            if self.process is not None:
                act(self.process)
            elif give_up and self.patience is not None:
                with contextlib.suppress(RuntimeError):  # no longer waiting
                    self.patience.reschedule(self._loop.time())

        with contextlib.suppress(RuntimeError):  # the loop and its processes are gone
            self._loop.call_soon_threadsafe(now)
