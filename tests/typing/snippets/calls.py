# mypy: ignore-errors
"""A task, called, is the function that it was."""

from typing import assert_type

from tenure import Tenure

app = Tenure()


@app.task
def hello(name: str, times: int = 1) -> str:
    return name * times


@app.task(queue="web", timeout=None)
async def fetch(url: str) -> bytes:
    return url.encode()


def fits() -> None:
    assert_type(hello("Ada"), str)
    assert_type(hello("Ada", times=2), str)
    assert_type(list(map(hello, ["Ada"])), list[str])


async def fits_too() -> None:
    running = fetch("https://example.org")
    assert_type(await running, bytes)


def wrong() -> None:
    # E: Argument 1 to "__call__" of "Task" has incompatible type "int"; expected "str"  [arg-type]
    hello(1)
    # E: Missing positional argument "name" in call to "__call__" of "Task"  [call-arg]
    hello()
    # E: Too many arguments for "__call__" of "Task"  [call-arg]
    hello("Ada", 2, 3)


def wrong_answer() -> int:
    # E: Incompatible return value type (got "str", expected "int")  [return-value]
    return hello("Ada")


async def wrong_too() -> None:
    # E: Argument "url" to "__call__" of "Task" has incompatible type "int";
    #    expected "str"  [arg-type]
    await fetch(url=1)
    # E: Value of type "Coroutine[Any, Any, bytes]" must be used  [unused-coroutine]
    fetch("https://example.org")
