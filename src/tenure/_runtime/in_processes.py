"""Runs handlers in processes of their own, for `process=True` and for suspects.

Such a handler can be ended for good without its neighbours noticing, and when it takes its
process down it takes nothing else. The lease stays with the child, which renews and settles it.
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
# A process that dies as soon after another job's end may have died of that one.
_AFTERMATH = 1.0
_IDLE = 60.0
_SUSPECTS_PER_CORE = 2
_AFTER_NO_START = timedelta(seconds=10)
# Why a handler's process ended, as it is counted: it was not needed, it could not load the app, its
# handler had to stop, or it died by itself.
ENDS = (
    *("idle", "replaced", "closed", "refused"),
    *(why.name.lower() for why in StopReason),
    *("memory_limit", "out_of_memory", "signal", "exit"),
)


class CannotStart(Exception):
    """A process ended before it could run anything: no fault of the job's."""


class ProcessExecutor:
    """Handlers in processes, which are kept for the next job for up to a minute. Few start at a
    time, and few suspects run at a time: after a crash all its neighbors are suspects, and a
    process for each would take the memory of what runs here. The others wait, renewed."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        keep: int,
        confirm: "Callable[[HeldLease], Awaitable[bool]] | None" = None,
    ) -> None:
        self._command = command
        # As they are now, when the app is loaded: a handler that runs here may change both, and no
        # process could load the app after that.
        self._environment = dict(os.environ)
        self._directory = _directory()
        self._keep = keep
        self._confirm = confirm
        self._idle: list[_HandlerProcess] = []
        cores = os.cpu_count() or 1
        self._starts = asyncio.Semaphore(max(1, cores // 2))
        self._suspects = asyncio.Semaphore(_SUSPECTS_PER_CORE * cores)
        self._tasks: set[asyncio.Task[None]] = set()
        # How many processes have ended, by why. A process is counted once, when it is gone.
        self.ended: Counter[str] = Counter(dict.fromkeys(ENDS, 0))

    def start(self, held: HeldLease, on_finished: OnFinished) -> "ProcessRun":
        """Begin to run the handler in an idle process, or a new one."""
        running = ProcessRun(held, asyncio.get_running_loop())
        task = asyncio.create_task(self._run(running, on_finished))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return running

    async def _run(self, running: "ProcessRun", on_finished: OnFinished) -> None:
        """Run one job, a suspect when it is its turn."""
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
            # It was to stop before there was a process for it.
            outcome = _not_begun(held)
        except CannotStart as error:
            log.error(
                "job %s: %s; it is tried again later, uncharged",
                held.job.id,
                error,
                extra=log_fields(held.job),
            )
            # Released, not snoozed: no handler ran, so a suspect stays one.
            outcome = Released(error=Error("CannotStart", str(error)), after=_AFTER_NO_START)
        except (OSError, ValueError, asyncio.IncompleteReadError) as error:
            log.warning(
                "the process of job %s broke: %s", held.job.id, error, extra=log_fields(held.job)
            )
        except Exception as defect:  # noqa: BLE001 - no defect may keep a slot and a lease
            outcome = execution.outcome_of_internal_error(defect, held.task)
            if running.process is not None:
                running.process.kill()
        stopped, over_at = held.stopping, boottime()
        try:
            if running.process is not None:
                # What was stopped may have left something behind that it had started.
                broken = outcome is None or stopped is not None
                # What a limited handler leaves would count against the next one.
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
        """Whether the job may begin now, and the store knows that where it must."""
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
        """End a process, and count its end. None: it has died, and its exit code says why."""
        await process.end()
        self.ended[why or process.died_of] += 1

    def _end_idle(self) -> None:
        """End the processes that have had nothing to do for a minute."""
        until = boottime() - _IDLE
        for process in [process for process in self._idle if process.idle_from <= until]:
            self._idle.remove(process)
            ending = asyncio.get_running_loop().create_task(self._end(process, "idle"))
            self._tasks.add(ending)
            ending.add_done_callback(self._tasks.discard)

    async def _free(self, held: HeldLease) -> "_HandlerProcess":
        """A process that has nothing to do: one that is there, or has become free until there is
        leave to start one. TimeoutError if the job is to stop by then."""
        process = self._take_idle(held)
        if process is None:
            async with self._starts:
                if held.stopping is not None:
                    raise TimeoutError
                process = self._take_idle(held) or await self._new()
        return process

    def _take_idle(self, held: HeldLease) -> "_HandlerProcess | None":
        """An idle process, once those that have died meanwhile are let go. A job that was suspect
        before gets none that may yet die of the job before it: its own deaths are counted. A first
        suspect takes any, for there may be many of them and most are innocent."""
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
            # No descriptors, no memory, no more processes: whatever it is, no handler has run.
            raise CannotStart(f"no process could be started for its handler: {error}") from error
        loaded: bool | None = None
        try:
            loaded = await process.loaded()
        finally:
            if not loaded:
                # None: its job was to stop while it loaded.
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
    """One process that runs handlers, one at a time."""

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
        # Read once per process: per job it took longer than running a short handler.
        self.kills_before = out_of_memory_kills()

    @property
    def code(self) -> int | None:
        """How it ended, once it has: an exit code, or a signal's number below zero."""
        return self._process.returncode

    @property
    def out_of_memory(self) -> bool:
        """Whether the kernel has killed it for want of memory."""
        return self.code == -signal.SIGKILL and out_of_memory_kills() > self.kills_before

    @property
    def died_of(self) -> str:
        """What ended it, as it is counted, where no one here meant it to end."""
        if self.out_of_memory:
            return "out_of_memory"
        return "signal" if (self.code or 0) < 0 else "exit"

    async def loaded(self) -> bool:
        """Return once the process has loaded the app; False if it ended before."""
        with contextlib.suppress(OSError):  # it was cut off: gone as well
            return bool(await self._reader.readline())
        return False

    async def run(self, held: HeldLease) -> tuple[Outcome | None, str | None]:
        """Run one job; None if the process died under it."""
        self.send(process_protocol.run(held.job, held.lease))
        if held.lease_state.cancel_requested:
            # Asked while it waited for this process.
            self.send({"cancel": True})
        while line := await self._reader.readline():
            message = process_protocol.decode(line)
            if "extended" in message:
                held.extend(message["extended"])
            else:
                return process_protocol.read_ended(message, held.lease_state)
        self.ended = True
        return None, None

    def send(self, message: dict[str, object]) -> None:
        """Tell the process something, if it still listens."""
        if not self._writer.is_closing():
            self._writer.write(process_protocol.encode(message))

    @property
    def gone(self) -> bool:
        """Whether it has ended, with its group."""
        return self._outlived.done()

    def kill(self) -> None:
        """End the process now, with the programs that the handler has started: they are in its
        group."""
        self.ended = True
        # Not by the Process itself: that would reap it, and asyncio's own wait would miss it.
        if self._process.returncode is None:
            os_process.kill(self._process.pid)

    async def end(self) -> None:
        """End the process, and wait until it is gone."""
        self.kill()
        self.close()
        await asyncio.shield(self._outlived)

    def close(self) -> None:
        self._writer.close()

    async def _end_group(self) -> None:
        """Once the process is gone, what it forked goes too: it may still have the channel open,
        and nobody would hear that the process died."""
        await self._process.wait()
        # The number is free once the group is: only one of our own session is meant.
        if self._process.pid in os_process.groups(os.getsid(0)):
            os_process.kill(self._process.pid)
        # What is in a session of its own stays: what the process itself said is here by then.
        asyncio.get_running_loop().call_later(_LAST_WORDS, self._writer.transport.abort)


def _directory() -> str | None:
    """The directory of this process; None if it is gone."""
    try:
        return str(Path.cwd())
    except OSError:
        return None


def _not_begun(held: HeldLease) -> Outcome:
    """The outcome of a job for which there was no process before it had to stop, or that may not
    begin any more."""
    if held.stopping is None:
        return Released()
    return execution.outcome_of_stop(held.stopping, held.time_limit)


def _why_over(held: HeldLease, stopped: StopReason | None, outcome: Outcome | None) -> str | None:
    """Why a process ends that is not kept after this outcome; None if it died by itself."""
    if stopped is not None:
        return stopped.name.lower()
    if outcome is None:
        return None
    refused = isinstance(outcome, Failed) and outcome.error.type == MemoryError.__qualname__
    return "memory_limit" if refused and held.task.memory is not None else "replaced"


def _lost(process: "_HandlerProcess | None", died_at: float) -> Lost:
    """The outcome of a handler whose process died. It was alone there, so its own death it is; but
    for one that came on the heels of another job, whose remains may have caused it."""
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
    """A handler that runs in a process of its own."""

    def __init__(self, held: HeldLease, loop: asyncio.AbstractEventLoop) -> None:
        self.held = held
        self.process: _HandlerProcess | None = None
        self.patience: asyncio.Timeout | None = None
        self._loop = loop

    def stop(self, why: StopReason) -> None:
        """Have the process raise into the handler; if there is none yet, wait for none."""
        self._later(lambda process: process.send({"stop": why.name}), give_up=True)

    def cancel_requested(self) -> None:
        """Tell the process, whose handle has a flag of its own."""
        self._later(lambda process: process.send({"cancel": True}))

    def kill(self) -> bool:
        """End the process: the handler has ended when it is gone."""
        self._later(lambda process: process.kill(), give_up=True)
        return True

    def _later(self, act: "Callable[[_HandlerProcess], None]", *, give_up: bool = False) -> None:
        def now() -> None:
            if self.process is not None:
                act(self.process)
            elif give_up and self.patience is not None:
                with contextlib.suppress(RuntimeError):  # it waits no longer
                    self.patience.reschedule(self._loop.time())

        with contextlib.suppress(RuntimeError):  # the loop is gone, and its processes with it
            self._loop.call_soon_threadsafe(now)
