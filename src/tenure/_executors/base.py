"""What every way to run a handler has in common: the call it makes, and whom it tells the end."""

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from tenure._executors.endings import Undecodable
from tenure._executors.logs import Excerpt
from tenure._hooks.around import aaround, around
from tenure._hooks.hooks import Hooks
from tenure._model.job import JobRow
from tenure._model.outcome import Outcome
from tenure._services.holdings import Held, Running
from tenure._store.engine import Engine
from tenure.errors import PayloadError
from tenure.job import AsyncJob, Grip, Job
from tenure.task import Definition

Told = Callable[[Held, Outcome, str | None], None]


class Executor(Protocol):
    """One way to run handlers."""

    def start(self, held: Held, tell: Told) -> Running:
        """Begin to run the job's handler; its end is told on the event loop."""

    async def close(self) -> None:
        """Let go of threads or processes."""


class Call:
    """One call of a handler, ready to be made; Undecodable if its arguments do not fit."""

    __slots__ = (
        "_is_async", "_middleware", "excerpt", "function", "handle", "named", "positional"
    )  # fmt: skip

    def __init__(
        self, task: Definition, row: JobRow, grip: Grip, engine: Engine, hooks: Hooks
    ) -> None:
        try:
            positional, self.named = task.parameters.load(row.args)
        except PayloadError as error:
            raise Undecodable(str(error)) from error
        self.handle = (AsyncJob if task.is_async else Job)(row, grip, engine)
        self.positional = [self.handle, *positional] if task.takes_job else positional
        self.function = task.function
        self._is_async = task.is_async
        self._middleware = hooks.around(is_async=task.is_async)
        self.excerpt = Excerpt(row)
        grip.log = self.excerpt.text

    def __call__(self) -> Any:
        """Call the handler, inside the middleware that goes around it."""
        if not self._middleware:
            return self.function(*self.positional, **self.named)
        call = partial(self.function, *self.positional, **self.named)
        return (aaround if self._is_async else around)(self._middleware, self.handle, call)
