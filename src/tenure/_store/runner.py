"""Two short loops that drive an operation: one for the sync world, one for the async one."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from tenure._store.steps import Op, Rows, Step
from tenure.errors import StoreError

T = TypeVar("T")


def run(op: Op[T], perform: Callable[[Step], Rows]) -> T:
    """Perform an operation's steps one by one; a step's StoreError is raised inside it."""
    try:
        step = next(op)
        while True:
            try:
                rows = perform(step)
            except StoreError as error:
                step = op.throw(error)
            else:
                step = op.send(rows)
    except StopIteration as stop:
        answer: T = stop.value
        return answer


async def arun(op: Op[T], perform: Callable[[Step], Awaitable[Rows]]) -> T:
    """The same, awaiting each step."""
    try:
        step = next(op)
        while True:
            try:
                rows = await perform(step)
            except StoreError as error:
                step = op.throw(error)
            else:
                step = op.send(rows)
    except StopIteration as stop:
        answer: T = stop.value
        return answer
