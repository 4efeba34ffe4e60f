"""Write each command once, as a store operation, and make it callable sync or async."""

from collections.abc import Callable, Collection, Coroutine
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from tenure import kinds
from tenure._model.audit import By
from tenure._store.engine import Engine, Runner
from tenure._store.port import Store
from tenure._store.steps import Op, Rows, Step, TransactionMark, stepwise
from tenure.errors import InvalidValue

T = TypeVar("T")
P = ParamSpec("P")


class CommandGroup:
    """The base class for command groups. It runs operations on one database."""

    def __init__(self, engine: Engine, *, runner: Runner | None = None) -> None:
        self._engine = engine
        self._store = engine.store
        self._runner = runner or engine

    def _run(self, op: Op[T]) -> T:
        """Run an operation and return its result."""
        return self._runner.run(op)

    async def _arun(self, op: Op[T]) -> T:
        """Async version of `_run`."""
        return await self._engine.arun(op)


def check_kinds(store: Store, tasks: Collection[str]) -> Op[None]:
    """Raise InvalidValue if one of these tasks is a kind of work that isn't enabled here."""
    if not kinds.TASKS.keys().isdisjoint(tasks):
        changed = yield from store.settings.changed()
        kinds.check_enabled(tasks, changed.get("enabled_kinds"))


async def on_a_thread(act: Callable[[], T]) -> T:
    """Run sync code on a thread. It keeps running even if the caller stops awaiting it."""
    import asyncio  # noqa: PLC0415 - async callers have it loaded, sync programs don't need it

    return await asyncio.to_thread(act)


V = TypeVar("V", bound=CommandGroup)


class SubGroup(Generic[V]):
    """A command group as an attribute of another, on the same database."""

    def __init__(self, kind: type[V]) -> None:
        self.kind = kind

    @overload
    def __get__(self, parent: None, kind: type, /) -> "SubGroup[V]": ...
    @overload
    def __get__(self, parent: CommandGroup, kind: type, /) -> V: ...
    def __get__(self, parent: CommandGroup | None, kind: type, /) -> "SubGroup[V] | V":
        if parent is None:
            return self
        return self.kind(parent._engine, runner=parent._runner)  # noqa: SLF001 - of its own class


class AdminCommand(Generic[V, P, T]):
    """A sync command, built from the method that describes its operation."""

    def __init__(self, describe: Callable[Concatenate[V, P], Op[T]]) -> None:
        self.describe: Callable[Concatenate[V, P], Op[T]] = requires_actor(describe)
        self.__doc__ = describe.__doc__
        self.__wrapped__ = describe

    @overload
    def __get__(self, verbs: None, kind: type, /) -> "AdminCommand[V, P, T]": ...
    @overload
    def __get__(self, verbs: V, kind: type, /) -> Callable[P, T]: ...
    def __get__(self, verbs: V | None, kind: type, /) -> "AdminCommand[V, P, T] | Callable[P, T]":
        if verbs is None:
            return self
        describe = self.describe

        @wraps(describe)
        def face(*args: P.args, **kwargs: P.kwargs) -> T:
            return verbs._run(describe(verbs, *args, **kwargs))  # noqa: SLF001 - of this file's own class

        return face


class AsyncTwin(Generic[V, P, T]):
    """A command's async version. Declared `Final` so all type checkers infer the same type."""

    def __init__(self, verb: AdminCommand[V, P, T]) -> None:
        self._describe = verb.describe
        self.__doc__ = verb.__doc__
        self.__wrapped__: Callable[Concatenate[V, P], Op[T]] = verb.__wrapped__

    @overload
    def __get__(self, verbs: None, kind: type, /) -> "AsyncTwin[V, P, T]": ...
    @overload
    def __get__(self, verbs: V, kind: type, /) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(
        self, verbs: V | None, kind: type, /
    ) -> "AsyncTwin[V, P, T] | Callable[P, Coroutine[Any, Any, T]]":
        if verbs is None:
            return self
        describe = self._describe

        @wraps(describe)
        async def face(*args: P.args, **kwargs: P.kwargs) -> T:
            return await verbs._arun(describe(verbs, *args, **kwargs))  # noqa: SLF001 - as above

        return face


def requires_actor(describe: Callable[P, T]) -> Callable[P, T]:
    """Make a method check `by` before it queries the database."""
    code = describe.__code__
    taken = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    if "by" not in taken:
        return describe
    place = taken.index("by")

    @wraps(describe)
    def checked(*args: P.args, **kwargs: P.kwargs) -> T:
        if len(args) > place or "by" in kwargs:
            check_actor(kwargs.get("by") if len(args) <= place else args[place])
        return describe(*args, **kwargs)

    return checked


def check_actor(by: object) -> None:
    """Raise InvalidValue unless the value is a `By`."""
    if not isinstance(by, By):
        actor = by if isinstance(by, str) else "me"
        raise InvalidValue(f"by must be a By, got {by!r}; write By({actor!r})")


MAX_PAGE_SIZE = 1000


def check_page_size(count: int) -> None:
    """Raise InvalidValue for a page that is empty or too large."""
    if not 1 <= count <= MAX_PAGE_SIZE:
        raise InvalidValue(f"count must be from 1 to {MAX_PAGE_SIZE:,}, got {count}")


def as_dry_run(op: Op[T]) -> Op[T]:
    """Run the same transaction, but roll back instead of committing."""
    return stepwise(op, _without_commit)


def _without_commit(step: Step) -> Op[Rows]:
    return (yield TransactionMark.ROLLBACK if step is TransactionMark.COMMIT else step)


def apply(op: Op[T], *, dry_run: bool) -> Op[T]:
    """Run a command's transaction, or only rehearse it."""
    return as_dry_run(op) if dry_run else op
