"""Types for the app's decorators, for type checkers. No runtime behavior."""

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, overload

from tenure._hooks.middleware import Draft
from tenure._model.event import JobEvent, WorkerEvent
from tenure.job import AsyncJob, Job
from tenure.task import JobTask, Registered, Task

P = ParamSpec("P")
R = TypeVar("R")
# This is a bound rather than the class itself, so that a first parameter which accepts any type
# doesn't count as a handle.
J = TypeVar("J", bound=Job)
AJ = TypeVar("AJ", bound=AsyncJob)
T = TypeVar("T", bound=Registered[..., Any])
E = TypeVar("E", bound=Callable[[Draft], Iterator[None]])
M = TypeVar(
    "M",
    bound=Callable[[Job | AsyncJob], Iterator[None]] | Callable[[AsyncJob], AsyncIterator[None]],
)
D = TypeVar("D", bound=Callable[[Job], Iterator[None]])
A = TypeVar(
    "A", bound=Callable[[AsyncJob], Iterator[None]] | Callable[[AsyncJob], AsyncIterator[None]]
)
L = TypeVar("L", bound=Callable[[JobEvent], object])
W = TypeVar("W", bound=Callable[[WorkerEvent], object])


class Decorator(Protocol):
    """What `@app.task(…)` returns, depending on the function's first parameter and kind."""

    # A function and a coroutine function overlap only if the first parameter or the result is Any
    # or object. Then either form will do.
    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, function: Callable[Concatenate[AJ, P], Coroutine[Any, Any, R]], /
    ) -> JobTask[P, R, Coroutine[Any, Any, R], AJ]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[J, P], R], /) -> JobTask[P, R, R, J]: ...
    @overload
    def __call__(
        self, function: Callable[P, Coroutine[Any, Any, R]], /
    ) -> Task[P, R, Coroutine[Any, Any, R]]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> Task[P, R, R]: ...
