# mypy: ignore-errors
"""A handle knows what its task returns, also among many."""

from dataclasses import dataclass
from typing import assert_type

from tenure import Handle, Tenure

app = Tenure()


@dataclass
class Receipt:
    total: int


@app.task
def pay(order_id: int) -> Receipt:
    return Receipt(order_id)


@app.task
async def count() -> int:
    return 1


@app.task
def forget() -> None: ...


def one() -> None:
    handle = pay.enqueue(1)
    assert_type(handle, Handle[Receipt])
    assert_type(handle.result.total, int)
    assert_type(handle.wait(), Handle[Receipt])
    assert_type(pay.using(key="k").enqueue(1).wait(10).result, Receipt)
    assert_type(count.enqueue().result, int)
    assert_type(forget.enqueue(), Handle[None])
    assert_type(pay.handle(5), Handle[Receipt])
    assert_type(count.handle(5).result, int)


def one_of_anything() -> Handle[object]:
    return pay.enqueue(1)


async def one_too() -> None:
    assert_type(await pay.aenqueue(1), Handle[Receipt])
    assert_type((await (await count.aenqueue()).wait_async()).result, int)


async def many() -> None:
    assert_type(app.enqueue_many(pay.bind(n) for n in range(3)), list[Handle[Receipt]])
    assert_type(app.enqueue_many([count.bind(), count.using(priority=9).bind()]), list[Handle[int]])
    assert_type(await app.aenqueue_many([pay.bind(1)]), list[Handle[Receipt]])


def wrong_id() -> None:
    # E: Argument 1 to "handle" of "Registered" has incompatible type "float";
    #    expected "int | str"  [arg-type]
    pay.handle(5.0)


def wrong_result() -> int:
    # E: "Receipt" has no attribute "sum"  [attr-defined]
    pay.enqueue(1).wait().result.sum()
    # E: Incompatible return value type (got "Receipt", expected "int")  [return-value]
    return pay.enqueue(1).result


def wrong_handle() -> Handle[str]:
    # E: Incompatible return value type (got "Handle[int]", expected "Handle[str]")  [return-value]
    return count.enqueue()


def wrong_handles() -> list[Handle[str]]:
    # E: List item 0 has incompatible type "BoundCall[int]"; expected "BoundCall[str]"  [list-item]
    return app.enqueue_many([count.bind()])


def no_calls() -> None:
    # E: Argument 1 to "enqueue_many" of "Tenure" has incompatible type "list[Handle[Receipt]]";
    #    expected "Iterable[BoundCall[Never]]"  [arg-type]
    app.enqueue_many([pay.enqueue(1)])
