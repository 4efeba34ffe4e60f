"""Calling a handler inside the middleware around run: in its thread, in its task, in its context.

Middleware looks on and may raise. It cannot change a result, and an error that it swallows goes
on all the same: a job must not count as done because of an `except` too wide.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from tenure._hooks.hooks import Layer


def around(layers: Sequence[Layer], job: Any, call: Callable[[], Any]) -> Any:
    """Call inside these, the first outermost."""
    entered: list[Any] = []
    raised: BaseException | None = None
    result = None
    try:
        try:
            for layer in layers:
                manager: Any = layer.manager(job)
                manager.__enter__()
                entered.append(manager)
            result = call()
        except BaseException as error:  # noqa: BLE001 - raised again, once all have seen it
            raised = error
        while entered:
            try:
                entered.pop().__exit__(*_seen(raised))
            except BaseException as error:  # noqa: BLE001 - its own takes the place of the first
                raised = error
        if raised is not None:
            raise raised
        return result
    finally:
        raised = None  # An error that its own frame refers to would stay until the next GC.


async def aaround(layers: Sequence[Layer], job: Any, call: Callable[[], Awaitable[Any]]) -> Any:
    """The same around what is awaited, with sync and async ones."""
    entered: list[tuple[Any, bool]] = []
    raised: BaseException | None = None
    result = None
    try:
        try:
            for layer in layers:
                manager: Any = layer.manager(job)
                if layer.awaits:
                    await manager.__aenter__()
                else:
                    manager.__enter__()
                entered.append((manager, layer.awaits))
            result = await call()
        except BaseException as error:  # noqa: BLE001 - raised again, once all have seen it
            raised = error
        while entered:
            manager, awaits = entered.pop()
            try:
                if awaits:
                    await manager.__aexit__(*_seen(raised))
                else:
                    manager.__exit__(*_seen(raised))
            except BaseException as error:  # noqa: BLE001 - its own takes the place of the first
                raised = error
        if raised is not None:
            raise raised
        return result
    finally:
        raised = None


def _seen(error: BaseException | None) -> tuple[Any, Any, Any]:
    """What a context manager is told of an error."""
    return (None, None, None) if error is None else (type(error), error, error.__traceback__)
