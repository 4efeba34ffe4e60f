"""Run `async def` handlers on the event loop.

A handler that awaits something gets its own task. Handlers that finish without waiting share a
task, because most of them run for less time than it takes to create one.
"""

import asyncio
import contextlib
import os
import time
from collections import deque
from collections.abc import Coroutine, Generator
from contextvars import Context
from typing import TYPE_CHECKING, Any

from tenure._hooks.middleware import Hooks
from tenure._model.outcome import Outcome
from tenure._runtime import execution, log_capture
from tenure._runtime.execution import HandlerCall, OnFinished
from tenure._runtime.held_leases import HeldLease, StopReason
from tenure._store.engine import Engine
from tenure.job import CURRENT

if TYPE_CHECKING:
    from collections.abc import Callable

# After this long, a task leaves the remaining handlers to a new task, so other work gets a turn.
_TURN = 0.005
LoopOutcome = tuple[Outcome, str | None]


class LoopExecutor:
    """Run handlers on the loop. A handler that never awaits blocks all others."""

    def __init__(self, engine: Engine, hooks: Hooks) -> None:
        self._engine = engine
        self._hooks = hooks
        self._loop = asyncio.get_running_loop()
        self._pid = os.getpid()
        self._begun: deque[LoopRun] = deque()
        self._task: asyncio.Task[None] | None = None

    def start(self, held: HeldLease, on_finished: OnFinished) -> "LoopRun":
        running = LoopRun(self._loop, held, on_finished)
        self._begun.append(running)
        self._have_run()
        return running

    def _have_run(self) -> None:
        """Create a task for queued handlers unless one is pending."""
        if self._task is None and self._begun:
            # A new context: this may be called from a handler's context.
            self._task = self._loop.create_task(self._run(), context=Context())

    async def _run(self) -> None:
        # Create the next task first, because it must run while this one waits.
        task, self._task = self._task, None
        until = time.monotonic() + _TURN
        try:
            while self._begun and task is not None:
                running = self._begun.popleft()
                self._have_run()
                if not running.run(self._handle(running.held)):
                    await running.resume(task)
                    break
                if task.cancelling() or time.monotonic() > until:
                    break
        finally:
            self._have_run()

    async def _handle(self, held: HeldLease) -> LoopOutcome:
        call: HandlerCall | None = None
        outcome: Outcome
        try:
            call = HandlerCall(held.task, held.job, held.lease_state, self._engine, self._hooks)
            CURRENT.set(call.handle)
            log_capture.CURRENT.set(call.excerpt)
            outcome = execution.outcome_of_return(await call())
        except BaseException as error:  # noqa: BLE001 - anything can end a handler
            outcome = execution.outcome_of_exception(
                error, held.task, held.stopping, held.time_limit
            )
        if os.getpid() != self._pid:
            # A forked copy of the process returned from the handler, but it doesn't own the job.
            os._exit(0)
        return outcome, call.excerpt.text() if call else None

    async def close(self) -> None:
        """Do nothing: the loop holds no resources."""


class LoopRun:
    __slots__ = ("_loop", "_on_finished", "_rest", "_stopped", "_task", "held")

    def __init__(
        self, loop: asyncio.AbstractEventLoop, held: HeldLease, on_finished: OnFinished
    ) -> None:
        self._loop = loop
        self._on_finished = on_finished
        self._task: asyncio.Task[None] | None = None
        self._rest: _ResumedCoroutine | None = None
        self._stopped = False
        self.held = held

    def run(self, handler: Coroutine[Any, Any, LoopOutcome]) -> bool:
        """Run the handler until it first waits. Return True if it ended without waiting."""
        held = self.held
        # If a stop was requested while the loop was blocked, it may arrive only after this.
        if self._stopped or held.stopping is not None:
            handler.close()
            why = execution.outcome_of_exception(
                asyncio.CancelledError(), held.task, held.stopping, held.time_limit
            )
            self._on_finished(held, why, None)
            return True
        context = Context()
        try:
            first = context.run(handler.send, None)
        except StopIteration as end:
            outcome, excerpt = end.value
            self._on_finished(held, outcome, excerpt)
            return True
        self._rest = _ResumedCoroutine(first, handler, context)
        return False

    async def resume(self, task: asyncio.Task[None]) -> None:
        if self._rest is None:
            raise AssertionError("the handler does not wait")
        self._task = task
        outcome, excerpt = await self._rest
        self._task = self._rest = None
        self._on_finished(self.held, outcome, excerpt)

    def stop(self, why: StopReason) -> None:  # noqa: ARG002 - the outcome says why
        with contextlib.suppress(RuntimeError):  # the loop and the handler are gone
            self._loop.call_soon_threadsafe(self._stop)

    def _stop(self) -> None:
        self._stopped = True
        if self._task is not None:
            self._task.cancel()

    def cancel_requested(self) -> None:
        """Do nothing: the handle reads the same flag."""

    def kill(self) -> bool:
        """Return False: only ending the child stops a handler that ignores cancellation."""
        return False


class _ResumedCoroutine:
    """The rest of a coroutine after its first step, in the coroutine's own context."""

    def __init__(
        self, first: Any, coroutine: Coroutine[Any, Any, LoopOutcome], context: Context
    ) -> None:
        self._waits_for = first
        self._coroutine = coroutine
        self._context = context

    def __await__(self) -> Generator[Any, Any, LoopOutcome]:
        run, waits_for = self._context.run, self._waits_for
        step: Callable[[Any], Any]
        while True:
            try:
                answer = yield waits_for
            except BaseException as error:  # noqa: BLE001 - a cancel, for the coroutine
                step, value = self._coroutine.throw, error
            else:
                step, value = self._coroutine.send, answer
            try:
                waits_for = run(step, value)
            except StopIteration as end:
                result: LoopOutcome = end.value
                return result
