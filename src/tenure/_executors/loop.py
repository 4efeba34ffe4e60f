"""Runs `async def` handlers on the event loop, one task each."""

import asyncio
import contextlib
from contextvars import Context
from typing import TYPE_CHECKING

from tenure._executors import endings, logs
from tenure._executors.base import Call, Told
from tenure._hooks.hooks import Hooks
from tenure._services.holdings import Held, Why
from tenure._store.engine import Engine
from tenure.job import CURRENT

if TYPE_CHECKING:
    from tenure._model.outcome import Outcome


class LoopExecutor:
    """Handlers as tasks of the loop. One that never awaits blocks all others."""

    def __init__(self, engine: Engine, hooks: Hooks) -> None:
        self._engine = engine
        self._hooks = hooks
        self._loop = asyncio.get_running_loop()

    def start(self, held: Held, tell: Told) -> "OnLoop":
        """Begin to run the handler in a task of its own."""
        # A context of its own: this may be called from within another handler's, at its end.
        task = self._loop.create_task(self._run(held, tell), context=Context())

        def unrun(task: asyncio.Task[None]) -> None:
            # Cancelled before its first step: nothing in it ran, also not its own `except`.
            if task.cancelled():
                tell(
                    held,
                    endings.raised(
                        asyncio.CancelledError(), held.task, held.stopping, held.time_limit
                    ),
                    None,
                )

        task.add_done_callback(unrun)
        return OnLoop(self._loop, task)

    async def _run(self, held: Held, tell: Told) -> None:
        call: Call | None = None
        outcome: Outcome
        try:
            call = Call(held.task, held.job, held.grip, self._engine, self._hooks)
            CURRENT.set(call.handle)
            logs.CURRENT.set(call.excerpt)
            outcome = endings.returned(await call())
        except BaseException as error:  # noqa: BLE001 - whatever it was, it ended the handler
            outcome = endings.raised(error, held.task, held.stopping, held.time_limit)
        tell(held, outcome, call.excerpt.text() if call else None)

    async def close(self) -> None:
        """Nothing to let go of."""


class OnLoop:
    """A handler that runs on the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, task: asyncio.Task[None]) -> None:
        self._loop = loop
        self._task = task

    def stop(self, why: Why) -> None:  # noqa: ARG002 - the outcome says why
        """Cancel the task."""
        with contextlib.suppress(RuntimeError):  # the loop is gone, and the task with it
            self._loop.call_soon_threadsafe(self._task.cancel)

    def cancel_requested(self) -> None:
        """Its handle reads the same flag."""

    def kill(self) -> bool:
        """A task that does not heed its cancel cannot be ended alone."""
        return False
