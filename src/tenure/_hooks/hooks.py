"""What is registered with one app; a mistake is refused here, when it is made.

Who calls middleware is in `passage` and `around`; who calls listeners, in `listeners`.
"""

import inspect
from collections.abc import Callable, Iterable, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
)
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tenure._hooks.listeners import AtEnd, Listeners
from tenure._hooks.passage import Passage
from tenure.errors import ConfigError, InvalidValue

if TYPE_CHECKING:
    from tenure._hooks.passage import Draft

Manager = Callable[[Any], AbstractContextManager[None] | AbstractAsyncContextManager[None]]
_PLACES = ("enqueue", "run")
_KINDS = ("def", "async")


@dataclass(frozen=True, slots=True)
class Layer:
    """One middleware around run."""

    name: str
    manager: Manager
    awaits: bool
    only: str | None

    def fits(self, *, is_async: bool) -> bool:
        """Whether it goes around handlers of this kind."""
        return self.only is None or self.only == ("async" if is_async else "def")


class Hooks:
    """The middleware and the listeners of one app, in the order in which they were registered."""

    def __init__(self, *, at_end: AtEnd) -> None:
        self.listeners: Listeners = Listeners(at_end)
        self._enqueue: list[Callable[[Draft], AbstractContextManager[None]]] = []
        self._run: list[Layer] = []
        self._by_kind: dict[bool, Sequence[Layer]] = {True: (), False: ()}

    def passage(self, *, many: bool = False) -> Passage:
        """The way into the store for a call that is about to be enqueued, or many."""
        return Passage(self._enqueue, self.listeners, many=many)

    def around(self, *, is_async: bool) -> Sequence[Layer]:
        """What goes around handlers of this kind, the outermost first."""
        return self._by_kind[is_async]

    def add(self, place: str, function: Callable[..., Any], *, only: str | None) -> None:
        """Register middleware; InvalidValue if it cannot be any."""
        if place not in _PLACES:
            raise InvalidValue(
                f"there is no middleware around {place!r}; "
                'write @app.middleware("enqueue") or @app.middleware("run")'
            )
        if only is not None and (place == "enqueue" or only not in _KINDS):
            raise InvalidValue(
                f"only={only!r} cannot be; it goes with middleware around run, and says for "
                'which handlers it is: "def" or "async"'
            )
        awaits = _awaits(function)
        if awaits and place == "enqueue":
            raise InvalidValue(
                f"{_name(function)} is an async def, and middleware around enqueue serves "
                "enqueue and aenqueue alike; write it as a def with one yield"
            )
        if awaits and only == "def":
            raise InvalidValue(
                f"{_name(function)} is an async def and cannot go around a def; "
                "write it as a def with one yield"
            )
        if place == "enqueue":
            self._enqueue.append(contextmanager(function))
            return
        manager = asynccontextmanager(function) if awaits else contextmanager(function)
        self._run.append(Layer(_name(function), manager, awaits, only))
        self._by_kind = {
            kind: tuple(each for each in self._run if each.fits(is_async=kind))
            for kind in (True, False)
        }

    def check(self, kinds: Iterable[tuple[str, bool]]) -> None:
        """ConfigError if a task, told by its name and whether it is async, is a def that
        middleware cannot go around."""
        awaiting = [each for each in self._run if each.awaits and each.only is None]
        if not awaiting:
            return
        for task, is_async in kinds:
            if not is_async:
                raise ConfigError(
                    f"middleware {awaiting[0].name} is an async def and cannot go around the task "
                    f"{task}, which is a def; write it as a def with one yield, which goes around "
                    'both, or say @app.middleware("run", only="async")'
                )


def _awaits(function: Callable[..., Any]) -> bool:
    """Whether the middleware is async; what is no generator of one argument is refused."""
    if not inspect.isgeneratorfunction(function) and not inspect.isasyncgenfunction(function):
        wrapped = getattr(function, "__wrapped__", None)
        if inspect.isgeneratorfunction(wrapped) or inspect.isasyncgenfunction(wrapped):
            raise InvalidValue(
                f"{_name(function)} is decorated already; leave @contextmanager away"
            )
        raise InvalidValue(
            f"{_name(function)} has no yield; middleware is a function with one yield, "
            "where what it goes around happens"
        )
    try:
        inspect.signature(function).bind(None)
    except TypeError as error:
        raise InvalidValue(
            f"{_name(function)} must take one argument, what it goes around: {error}"
        ) from error
    return inspect.isasyncgenfunction(function)


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__qualname__", repr(function))
