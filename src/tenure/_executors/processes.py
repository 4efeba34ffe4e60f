"""Runs handlers in processes of their own, for `process=True` and for suspects.

Such a handler can be ended for good without its neighbours noticing, and when it takes its
process down it takes nothing else. The lease stays with the child, which renews and settles it.
"""

import asyncio
import contextlib
import os
import socket
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from tenure._executors import endings, groups, messages
from tenure._executors.base import Told
from tenure._model.outcome import Outcome, Snoozed
from tenure._services.base import about, log
from tenure._services.board import Phase
from tenure._services.holdings import Held, Why
from tenure.job import boottime

if TYPE_CHECKING:
    from collections.abc import Callable

_LONGEST_MESSAGE = 64 * 1024 * 1024
_LAST_WORDS = 1.0
_AFTER_NO_START = timedelta(seconds=10)


class CannotStart(Exception):
    """A process ended before it could run anything: no fault of the job's."""


class ProcessExecutor:
    """Handlers in processes, which are kept for the next job. Few start at a time: after a worker
    has died, all that it held are suspects, and starting a process for each at once would starve
    what runs here."""

    def __init__(self, command: Sequence[str], *, keep: int) -> None:
        self._command = command
        self._keep = keep
        self._idle: list[_Process] = []
        self._starts = asyncio.Semaphore(max(1, (os.cpu_count() or 1) // 2))
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, held: Held, tell: Told) -> "InProcess":
        """Begin to run the handler in an idle process, or a new one."""
        running = InProcess(held, asyncio.get_running_loop())
        task = asyncio.create_task(self._run(running, tell))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return running

    async def _run(self, running: "InProcess", tell: Told) -> None:
        held = running.held
        outcome: Outcome | None
        excerpt: str | None = None
        try:
            async with asyncio.timeout(None) as running.patience:
                process = running.process = await self._free(held)
            if held.stopping is not None:
                process.kill()
            held.start_clock(boottime())
            held.mark(Phase.APART)
            outcome, excerpt = await process.run(held)
        except TimeoutError:
            # It was to stop before there was a process for it.
            outcome = None
        except CannotStart as error:
            log.error(
                "job %s: %s; it is tried again later, uncharged",
                held.job.id,
                error,
                extra=about(held.job),
            )
            outcome = Snoozed(_AFTER_NO_START)
        except (OSError, ValueError, asyncio.IncompleteReadError) as error:
            log.warning(
                "the process of job %s broke: %s", held.job.id, error, extra=about(held.job)
            )
            outcome = None
        except Exception as defect:  # noqa: BLE001 - no defect may keep a slot and a lease
            outcome = endings.unjudged(defect, held.task)
            if running.process is not None:
                running.process.kill()
        if outcome is None and held.stopping is not None:
            outcome = endings.stopped(held.stopping, held.time_limit)
        try:
            if running.process is not None:
                # What was stopped may have left something behind that it had started.
                broken = outcome is None or held.stopping is not None
                await self._put_back(running.process, broken=broken)
        finally:
            tell(held, outcome, excerpt)

    async def _put_back(self, process: "_Process", *, broken: bool) -> None:
        if broken or process.ended or len(self._idle) >= self._keep:
            await process.end()
        else:
            self._idle.append(process)

    async def _free(self, held: Held) -> "_Process":
        """A process that has nothing to do: one that is there, or has become free until there is
        leave to start one. TimeoutError if the job is to stop by then."""
        if not self._any_idle():
            async with self._starts:
                if held.stopping is not None:
                    raise TimeoutError
                if not self._any_idle():
                    return await self._new()
        return self._idle.pop()

    def _any_idle(self) -> bool:
        """Whether there is an idle process, once those that have died meanwhile are let go."""
        for dead in [process for process in self._idle if process.gone]:
            self._idle.remove(dead)
            dead.close()
        return bool(self._idle)

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
