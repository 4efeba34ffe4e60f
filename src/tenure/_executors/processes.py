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
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from tenure._executors import endings, groups, messages
from tenure._executors.base import Told
from tenure._executors.memory import out_of_memory_kills
from tenure._model.outcome import Error, Loss, Lost, Outcome, Released
from tenure._rules import exits
from tenure._services.base import about, log
from tenure._services.board import Phase
from tenure._services.holdings import Held, Why
from tenure.job import boottime

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

_LONGEST_MESSAGE = 64 * 1024 * 1024
_LAST_WORDS = 1.0
# A process that dies as soon after another job's end may have died of that one.
_AFTERMATH = 1.0
_IDLE = 60.0
_SUSPECTS_PER_CORE = 2
_AFTER_NO_START = timedelta(seconds=10)


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
        confirm: "Callable[[Held], Awaitable[bool]] | None" = None,
    ) -> None:
        self._command = command
        self._keep = keep
        self._confirm = confirm
        self._idle: list[_Process] = []
        cores = os.cpu_count() or 1
        self._starts = asyncio.Semaphore(max(1, cores // 2))
        self._suspects = asyncio.Semaphore(_SUSPECTS_PER_CORE * cores)
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, held: Held, tell: Told) -> "InProcess":
        """Begin to run the handler in an idle process, or a new one."""
        running = InProcess(held, asyncio.get_running_loop())
        task = asyncio.create_task(self._run(running, tell))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return running

    async def _run(self, running: "InProcess", tell: Told) -> None:
        """Run one job, a suspect when it is its turn."""
        if not running.held.suspect:
            await self._run_in_turn(running, tell)
            return
        try:
            async with asyncio.timeout(None) as running.patience:
                await self._suspects.acquire()
        except TimeoutError:
            tell(running.held, _not_begun(running.held), None)
            return
        try:
            await self._run_in_turn(running, tell)
        finally:
            self._suspects.release()

    async def _run_in_turn(self, running: "InProcess", tell: Told) -> None:
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
                held.begin(Phase.APART, boottime())
                outcome, excerpt = await process.run(held)
        except TimeoutError:
            # It was to stop before there was a process for it.
            outcome = _not_begun(held)
        except CannotStart as error:
            log.error(
                "job %s: %s; it is tried again later, uncharged",
                held.job.id,
                error,
                extra=about(held.job),
            )
            # Released, not snoozed: no handler ran, so a suspect stays one.
            outcome = Released(error=Error("CannotStart", str(error)), after=_AFTER_NO_START)
        except (OSError, ValueError, asyncio.IncompleteReadError) as error:
            log.warning(
                "the process of job %s broke: %s", held.job.id, error, extra=about(held.job)
            )
        except Exception as defect:  # noqa: BLE001 - no defect may keep a slot and a lease
            outcome = endings.unjudged(defect, held.task)
            if running.process is not None:
                running.process.kill()
        stopped, over_at = held.stopping, boottime()
        try:
            if running.process is not None:
                # What was stopped may have left something behind that it had started.
                broken = outcome is None or stopped is not None
                # What a limited handler leaves would count against the next one.
                broken = broken or held.task.memory is not None
                await self._put_back(running.process, broken=broken)
        finally:
            if outcome is None and stopped is not None:
                outcome = endings.stopped(stopped, held.time_limit)
            if outcome is None:
                outcome = _lost(running.process, over_at)
            tell(held, outcome, excerpt)

    async def _may_begin(self, held: Held) -> bool:
        """Whether the job may begin now, and the store knows that where it must."""
        if not held.confirm or self._confirm is None:
            return True
        return await self._confirm(held)

    async def _put_back(self, process: "_Process", *, broken: bool) -> None:
        if broken or process.ended or len(self._idle) >= self._keep:
            await process.end()
        else:
            process.idle_from = boottime()
            self._idle.append(process)
            asyncio.get_running_loop().call_later(_IDLE, self._end_idle)

    def _end_idle(self) -> None:
        """End the processes that have had nothing to do for a minute."""
        until = boottime() - _IDLE
        for process in [each for each in self._idle if each.idle_from <= until]:
            self._idle.remove(process)
            ending = asyncio.get_running_loop().create_task(process.end())
            self._tasks.add(ending)
            ending.add_done_callback(self._tasks.discard)

    async def _free(self, held: Held) -> "_Process":
        """A process that has nothing to do: one that is there, or has become free until there is
        leave to start one. TimeoutError if the job is to stop by then."""
        process = self._take_idle(held)
        if process is None:
            async with self._starts:
                if held.stopping is not None:
                    raise TimeoutError
                process = self._take_idle(held) or await self._new()
        return process

    def _take_idle(self, held: Held) -> "_Process | None":
        """An idle process, once those that have died meanwhile are let go. A job that was suspect
        before gets none that may yet die of the job before it: its own deaths are counted. A first
        suspect takes any, for there may be many of them and most are innocent."""
        for dead in [process for process in self._idle if process.gone]:
            self._idle.remove(dead)
            dead.close()
        again = held.suspect and (held.job.losses > 0 or held.job.worker_losses > 1)
        until = boottime() - (_AFTERMATH if again else 0)
        fit = [process for process in self._idle if process.idle_from <= until]
        if not fit:
            return None
        self._idle.remove(fit[-1])
        return fit[-1]

    async def _new(self) -> "_Process":
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
                )
            reader, writer = await asyncio.open_connection(sock=ours, limit=_LONGEST_MESSAGE)
        except BaseException:
            ours.close()
            raise
        made = _Process(process, reader, writer)
        loaded = False
        try:
            loaded = await made.loaded()
        finally:
            if not loaded:
                await made.end()
        if not loaded:
            raise CannotStart("the process for its handler could not load the app")
        return made

    async def close(self) -> None:
        """End the idle processes."""
        for process in self._idle:
            await process.end()
        self._idle.clear()


class _Process:
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

    async def loaded(self) -> bool:
        """Return once the process has loaded the app; False if it ended before."""
        return bool(await self._reader.readline())

    async def run(self, held: Held) -> tuple[Outcome | None, str | None]:
        """Run one job; None if the process died under it."""
        self.send(messages.run(held.job, held.lease))
        if held.grip.cancel_requested:
            # Asked while it waited for this process.
            self.send({"cancel": True})
        while line := await self._reader.readline():
            message = messages.decode(line)
            if "extended" in message:
                held.extend(message["extended"])
            else:
                return messages.read_ended(message, held.grip)
        self.ended = True
        return None, None

    def send(self, message: dict[str, object]) -> None:
        """Tell the process something, if it still listens."""
        if not self._writer.is_closing():
            self._writer.write(messages.encode(message))

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
            groups.kill(self._process.pid)

    async def end(self) -> None:
        """End the process, and wait until it is gone."""
        self.kill()
        self.close()
        await asyncio.shield(self._outlived)

    def close(self) -> None:
        """Let go of the channel."""
        self._writer.close()

    async def _end_group(self) -> None:
        """Once the process is gone, what it forked goes too: it may still have the channel open,
        and nobody would hear that the process died."""
        await self._process.wait()
        # The number is free once the group is: only one of our own session is meant.
        if self._process.pid in groups.groups(os.getsid(0)):
            groups.kill(self._process.pid)
        # What is in a session of its own stays: what the process itself said is here by then.
        asyncio.get_running_loop().call_later(_LAST_WORDS, self._writer.transport.abort)


def _not_begun(held: Held) -> Outcome:
    """The outcome of a job for which there was no process before it had to stop, or that may not
    begin any more."""
    if held.stopping is None:
        return Released()
    return endings.stopped(held.stopping, held.time_limit)


def _lost(process: "_Process | None", died_at: float) -> Lost:
    """The outcome of a handler whose process died. It was alone there, so its own death it is; but
    for one that came on the heels of another job, whose remains may have caused it."""
    if process is None or process.code is None:
        return Lost(Loss.OWN, Error("ProcessDied", "its own process died"))
    how = exits.describe(process.code)
    after_another = died_at - process.idle_from < _AFTERMATH
    when = ", right after another job" if after_another else ""
    error = Error("ProcessDied", f"its own process died: {how}{when}")
    if process.code == -signal.SIGKILL and out_of_memory_kills() > process.kills_before:
        killed = f"its own process was killed: the system was out of memory{when}"
        error = Error("OutOfMemory", killed)
    return Lost(Loss.SHARED if after_another else Loss.OWN, error)


class InProcess:
    """A handler that runs in a process of its own."""

    def __init__(self, held: Held, loop: asyncio.AbstractEventLoop) -> None:
        self.held = held
        self.process: _Process | None = None
        self.patience: asyncio.Timeout | None = None
        self._loop = loop

    def stop(self, why: Why) -> None:
        """Have the process raise into the handler; if there is none yet, wait for none."""
        self._later(lambda process: process.send({"stop": why.name}), give_up=True)

    def cancel_requested(self) -> None:
        """Tell the process, whose handle has a flag of its own."""
        self._later(lambda process: process.send({"cancel": True}))

    def kill(self) -> bool:
        """End the process: the handler has ended when it is gone."""
        self._later(lambda process: process.kill(), give_up=True)
        return True

    def _later(self, act: "Callable[[_Process], None]", *, give_up: bool = False) -> None:
        def now() -> None:
            if self.process is not None:
                act(self.process)
            elif give_up and self.patience is not None:
                with contextlib.suppress(RuntimeError):  # it waits no longer
                    self.patience.reschedule(self._loop.time())

        with contextlib.suppress(RuntimeError):  # the loop is gone, and its processes with it
            self._loop.call_soon_threadsafe(now)
