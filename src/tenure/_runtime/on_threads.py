"""Run `def` handlers in threads. To stop a handler, `Stopped` is raised in its thread."""

import asyncio
import contextlib
import os
import socket
import threading
from collections import deque
from contextvars import Context
from queue import SimpleQueue

from tenure._hooks.middleware import Hooks
from tenure._model.outcome import Outcome
from tenure._runtime import execution, log_capture
from tenure._runtime.execution import HandlerCall, OnFinished
from tenure._runtime.held_leases import HeldLease, StopReason
from tenure._runtime.thread_interrupt import Interrupt
from tenure._store.engine import Engine
from tenure.errors import Stopped
from tenure.job import CURRENT


class ThreadExecutor:
    # Report finished handlers in groups, because waking the loop takes longer than many handlers
    # do.

    def __init__(self, engine: Engine, hooks: Hooks, *, slots: int) -> None:
        self._engine = engine
        self._hooks = hooks
        self._slots = slots
        self._loop = asyncio.get_running_loop()
        self._pid = os.getpid()
        self._begun: SimpleQueue[tuple[ThreadRun, OnFinished] | None] = SimpleQueue()
        self._ended: deque[tuple[OnFinished, HeldLease, Outcome, str | None]] = deque()
        self._rung = False
        self._running = 0
        self._threads = 0

    def start(self, held: HeldLease, on_finished: OnFinished) -> "ThreadRun":
        if self._running >= self._threads and self._threads < self._slots:
            name = f"tenure-job_{self._threads}"
            threading.Thread(target=self._work, name=name, daemon=True).start()
            self._threads += 1
        running = ThreadRun(held)
        self._running += 1
        self._begun.put((running, on_finished))
        return running

    def _work(self) -> None:
        while (begun := self._begun.get()) is not None:
            running, on_finished = begun
            # A new context, so one job's variables don't leak into the next.
            outcome, log = Context().run(self._run, running)
            if os.getpid() != self._pid:
                # A forked copy of the process returned from the handler, but doesn't own the job.
                os._exit(0)
            self._ended.append((on_finished, running.held, outcome, log))
            if not self._rung:
                self._rung = True
                with contextlib.suppress(RuntimeError):  # the loop is gone
                    self._loop.call_soon_threadsafe(self._report_finished)

    def _report_finished(self) -> None:
        """Report finished handlers; later ones schedule this again."""
        self._rung = False
        while self._ended:
            on_finished, held, outcome, log = self._ended.popleft()
            self._running -= 1
            on_finished(held, outcome, log)

    def _run(self, running: "ThreadRun") -> tuple[Outcome, str | None]:
        held = running.held
        call: HandlerCall | None = None
        outcome: Outcome
        try:
            call = HandlerCall(held.task, held.job, held.lease_state, self._engine, self._hooks)
            CURRENT.set(call.handle)
            log_capture.CURRENT.set(call.excerpt)
            call.excerpt.check = held.lease_state.interrupt = running.interrupt.check
            held.lease_state.interrupt_here = running.interrupt.check_here
            try:
                running.enter()
                outcome = execution.outcome_of_return(call())
            finally:
                running.leave()
        except BaseException as error:  # noqa: BLE001 - anything can end a handler
            outcome = execution.outcome_of_exception(
                error, held.task, held.stopping, held.time_limit
            )
        running.leave()
        return outcome, call.excerpt.text() if call else None

    async def close(self) -> None:
        """End idle threads. A thread that is still running ends with the process."""
        for _ in range(self._threads):
            self._begun.put(None)


class ThreadRun:
    def __init__(self, held: HeldLease) -> None:
        self.held = held
        self.interrupt: Interrupt = Interrupt()

    def enter(self) -> None:
        """Allow interrupts of this thread. Raise immediately if a stop was requested."""
        self.interrupt.enter()
        if self.held.stopping is not None:
            raise Stopped(self.held.stopping.value)

    def leave(self) -> None:
        self.interrupt.leave()

    def stop(self, why: StopReason) -> None:  # noqa: ARG002 - the outcome says why
        """Raise `Stopped` in the thread, and abort the SQL statement it is waiting for."""
        self.interrupt.request()
        _cut_off(self.held.lease_state.connection)

    def cancel_requested(self) -> None:
        """Do nothing: the handle reads the same flag."""

    def kill(self) -> bool:
        """Return False: a thread can't be killed on its own."""
        return False


def _cut_off(connection: object) -> None:
    """Shut down the job's transaction socket, which its thread is waiting on in C code."""
    with contextlib.suppress(Exception):
        fileno = connection.fileno()  # type: ignore[attr-defined]
        with socket.socket(fileno=os.dup(fileno)) as copy:
            copy.shutdown(socket.SHUT_RDWR)
