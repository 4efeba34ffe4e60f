# mypy: ignore-errors
"""A first parameter that could be anything is an argument like others."""

from collections.abc import Hashable, Sized
from typing import assert_type

from tenure import Handle, Tenure

app = Tenure()


@app.task
def show(value: object, times: int = 1) -> int:
    return len(str(value)) * times


@app.task(queue="slow")
async def later(value: object) -> int:
    return len(str(value))


@app.task
def note(key: Hashable) -> None: ...


@app.task
def measure(thing: Sized | None) -> int:
    return 0 if thing is None else len(thing)


@app.task
def nothing() -> None: ...


@app.task
def rest(**counts: int) -> int:
    return sum(counts.values())


def fits() -> None:
    assert_type(show.enqueue("a", times=2), Handle[int])
    assert_type(later.enqueue(value="a"), Handle[int])
    assert_type(note.enqueue("a"), Handle[None])
    assert_type(measure.enqueue([1]), Handle[int])
    assert_type(nothing.enqueue(), Handle[None])
    assert_type(rest.enqueue(a=1, b=2), Handle[int])
    assert_type(show("a"), int)


def wrong() -> None:
    # E: Missing positional argument "value" in call to "enqueue" of "TaskCall"  [call-arg]
    show.enqueue()
    # E: Missing positional argument "key" in call to "enqueue" of "TaskCall"  [call-arg]
    note.enqueue()
    # E: Argument "a" to "enqueue" of "TaskCall" has incompatible type "str";
    #    expected "int"  [arg-type]
    rest.enqueue(a="1")
