"""Runs `async def` handlers on the event loop.

A handler that has to wait has a task to itself. Those that end without waiting share one, which
goes from one to the next: making a task takes longer than most of them do.
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

# After so long a task leaves what is left to the next one, behind all else that the loop has to do.
_TURN = 0.005
LoopOutcome = tuple[Outcome, str | None]


class LoopExecutor:
    """Handlers on the loop. One that never awaits blocks all others."""

    def __init__(self, engine: Engine, hooks: Hooks) -> None:
        self._engine = engine
        self._hooks = hooks
        self._loop = asyncio.get_running_loop()
        self._pid = os.getpid()
        self._begun: deque[LoopRun] = deque()
        self._task: asyncio.Task[None] | None = None

    def start(self, held: HeldLease, on_finished: OnFinished) -> "LoopRun":
        """Begin to run the handler, behind those that were begun before."""
        running = LoopRun(self._loop, held, on_finished)
        self._begun.append(running)
        self._have_run()
        return running

    def _have_run(self) -> None:
        """See to it that a task comes for what has begun, if none is on its way."""
        if self._task is None and self._begun:
            # A context of its own: this may be called from within a handler's, at its end.
            self._task = self._loop.create_task(self._run(), context=Context())

    async def _run(self) -> None:
        """Run handlers until one waits, or the turn is over. The next task is called first, for
        it must come while this one waits."""
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
        """Call one handler, to its end."""
        call: HandlerCall | None = None
        outcome: Outcome
        try:
            call = HandlerCall(held.task, held.job, held.lease_state, self._engine, self._hooks)
            CURRENT.set(call.handle)
            log_capture.CURRENT.set(call.excerpt)
            outcome = execution.outcome_of_return(await call())
        except BaseException as error:  # noqa: BLE001 - whatever it was, it ended the handler
            outcome = execution.outcome_of_exception(
                error, held.task, held.stopping, held.time_limit
            )
        if os.getpid() != self._pid:
            # A copy that the handler forked comes back from it: the job is not the copy's.
            os._exit(0)
        return outcome, call.excerpt.text() if call else None

    async def close(self) -> None:
        """Nothing to let go of."""


class LoopRun:
    """A handler that runs on the loop."""

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
        """Run the handler until it waits for the first time. True if it ended without waiting."""
        held = self.held
        # Asked to while another blocked the loop, it may come before the call that stops it.
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
        """Run the rest of a handler that waits, in this task."""
        if self._rest is None:
            raise AssertionError("the handler does not wait")
        self._task = task
        outcome, excerpt = await self._rest
        self._task = self._rest = None
        self._on_finished(self.held, outcome, excerpt)

    def stop(self, why: StopReason) -> None:  # noqa: ARG002 - the outcome says why
        """Cancel it, or do not let it begin."""
        with contextlib.suppress(RuntimeError):  # the loop is gone, and the handler with it
            self._loop.call_soon_threadsafe(self._stop)

    def _stop(self) -> None:
        self._stopped = True
        if self._task is not None:
            self._task.cancel()

    def cancel_requested(self) -> None:
        """Its handle reads the same flag."""

    def kill(self) -> bool:
        """A handler that does not heed its cancel cannot be ended alone."""
        return False


class _ResumedCoroutine:
    """What is left of a coroutine that has made its first step, each step in its own context: a
    task has one context for all that it runs."""

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
            except BaseException as error:  # noqa: BLE001 - a cancel, which is the coroutine's
                step, word = self._coroutine.throw, error
            else:
                step, word = self._coroutine.send, answer
            try:
                waits_for = run(step, word)
            except StopIteration as end:
                result: LoopOutcome = end.value
                return result
