"""A way to run a handler in the thread of whoever asks, and what a service needs there."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import suppress
from contextvars import Context
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from tenure._executors import endings, logs
from tenure._executors.base import Call, Told
from tenure._hooks.hooks import Hooks
from tenure._model.outcome import Released
from tenure._services.holdings import Held, Why
from tenure._store.engine import Engine
from tenure._store.port import Op
from tenure.errors import InvalidValue
from tenure.job import CURRENT

if TYPE_CHECKING:
    from tenure._model.outcome import Outcome

T = TypeVar("T")


class Straight:
    """A link over the app's own connections."""

    def __init__(self, engine: Engine, *, is_async: bool) -> None:
        self._engine = engine
        self._is_async = is_async

    async def run(self, op: Op[T]) -> T:
        """Perform an operation; in the sync world without ever letting go of the thread."""
        return await self._engine.arun(op) if self._is_async else self._engine.run(op)

    def hurry(self, deadline: timedelta) -> None:
        """Nothing is renewed here."""

    async def open(self) -> None:
        """Nothing to open."""

    async def close(self) -> None:
        """Nothing to close."""

    def listen(self, channel: str, *, anyway: bool = False) -> AsyncIterator[str]:
        """Nobody listens here."""
        raise NotImplementedError(channel)


class Here:
    """The way to run a handler in the thread of whoever asks, or on its loop."""

    def __init__(self, engine: Engine, hooks: Hooks, *, is_async: bool) -> None:
        self._engine = engine
        self._hooks = hooks
        self._is_async = is_async
        self._tasks: set[asyncio.Task[None]] = set()
        self.ended: tuple[Outcome, BaseException | None] = (Released(), None)

    def start(self, held: Held, tell: Told) -> "Here":
        """Run the handler to its end; on a loop, begin to."""
        # A context of its own, as in a worker: what a test has set is not there either.
        if self._is_async:
            task = asyncio.get_running_loop().create_task(self._arun(held, tell), context=Context())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        else:
            Context().run(self._run, held, tell)
        return self

    def _run(self, held: Held, tell: Told) -> None:
        call: Call | None = None
        try:
            call = self._call(held)
            if held.task.is_async:
                _refuse_loop(held)
            result = asyncio.run(self._closing(call())) if held.task.is_async else call()
            self.ended = endings.returned(result), None
        except BaseException as error:  # noqa: BLE001 - whatever it was, it ended the handler
            self._raised(held, error)
        tell(held, self.ended[0], call.excerpt.text() if call else None)

    async def _arun(self, held: Held, tell: Told) -> None:
        call: Call | None = None
        try:
            call = self._call(held)
            result = await (call() if held.task.is_async else asyncio.to_thread(call))
            self.ended = endings.returned(result), None
        except BaseException as error:  # noqa: BLE001 - whatever it was, it ended the handler
            self._raised(held, error)
        tell(held, self.ended[0], call.excerpt.text() if call else None)

    def _call(self, held: Held) -> Call:
        call = Call(held.task, held.job, held.grip, self._engine, self._hooks)
        CURRENT.set(call.handle)
        logs.CURRENT.set(call.excerpt)
        return call

    def _raised(self, held: Held, error: BaseException) -> None:
        outcome = endings.raised(error, held.task, None, None)
        if isinstance(error, KeyboardInterrupt):
            outcome = Released()
        self.ended = outcome, error

    async def _closing(self, handler: Coroutine[Any, Any, T]) -> T:
        """The handler on a loop of its own, whose connections end with it."""
        try:
            return await handler
        finally:
            await self._engine.aclose()

    def stop(self, why: Why) -> None:
        """Nobody asks a handler to stop here."""

    def cancel_requested(self) -> None:
        """Its handle sees it with its next report."""

    def kill(self) -> bool:
        """Nobody ends a handler here."""
        return False

    async def close(self) -> None:
        """Nothing to let go of."""


def _refuse_loop(held: Held) -> None:
    with suppress(RuntimeError):
        asyncio.get_running_loop()
        raise InvalidValue(
            f"{held.job.task} is an async def, and an event loop runs here already; "
            "write await aenqueue(…), or await adrain(…)"
        )


class Suspended(Exception):
    """A coroutine that was to run through wants to wait."""


def drive(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end without an event loop: there may be one in this thread already.
    It awaits only what answers at once, unless it must wait for a lock."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        answer: T = done.value
        return answer
    except RuntimeError as error:
        if "event loop" in str(error):
            raise Suspended from error
        raise
    coroutine.close()
    raise Suspended
