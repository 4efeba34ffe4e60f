"""Calling a handler inside the middleware around run: in its thread, in its task, in its context.

Middleware looks on and may raise. It cannot change a result, and an error that it swallows goes
on all the same: a job must not count as done because of an `except` too wide.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from tenure._hooks.hooks import Manager


def around(managers: Sequence[Manager], job: Any, call: Callable[[], Any]) -> Any:
    """Call inside these, the first outermost."""
    if not managers:
        return call()
    raised: BaseException | None = None
    result = None
    try:
        with managers[0](job):  # type: ignore[union-attr]  # Hooks has only sync ones for a def.
            try:
                result = around(managers[1:], job, call)
            except BaseException as error:
                raised = error
                raise
        if raised is not None:
            raise raised
        return result
    finally:
        raised = None  # An error that its own frame refers to would stay until the next GC.


async def aaround(managers: Sequence[Manager], job: Any, call: Callable[[], Awaitable[Any]]) -> Any:
    """The same around what is awaited, with sync and async ones."""
    if not managers:
        return await call()
    manager = managers[0](job)
    raised: BaseException | None = None
    result = None

    async def inner() -> None:
        nonlocal raised, result
        try:
            result = await aaround(managers[1:], job, call)
        except BaseException as error:
            raised = error
            raise

    try:
        if isinstance(manager, AbstractAsyncContextManager):
            async with manager:
                await inner()
        else:
            with manager:
                await inner()
        if raised is not None:
            raise raised
        return result
    finally:
        raised = None
