# mypy: ignore-errors
"""Calls of several tasks go together: all of them or none."""

from tenure import Handle, Tenure
from tenure.task import BoundCall

app = Tenure()


@app.task
def pay(order_id: int) -> float:
    return order_id * 1.5


@app.task
async def greet(name: str) -> str:
    return name


@app.task
def forget() -> None: ...


def fits() -> list[Handle[object]]:
    return app.enqueue_many([pay.bind(1), greet.bind("Ada"), forget.bind()])


def fits_one_by_one(calls: list[BoundCall[object]]) -> list[Handle[object]]:
    calls.append(pay.bind(1))
    calls.append(greet.using(priority=9).bind("Ada"))
    return app.enqueue_many(calls)


async def fits_too() -> list[Handle[object]]:
    return await app.aenqueue_many([pay.bind(1), greet.bind("Ada")])


def wrong() -> list[Handle[object]]:
    # E: Argument 1 to "bind" of "TaskCall" has incompatible type "int"; expected "str"  [arg-type]
    return app.enqueue_many([pay.bind(1), greet.bind(1)])
