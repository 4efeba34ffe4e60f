"""Many calls at once: one transaction, in order, all of them or none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from tenure.errors import InvalidValue, PayloadError, QueryFailed
from tests.app.acts import fetch, rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tenure import Tenure
    from tenure.task import BoundCall, Task

    Double = Task[[int], int, int]

MANY = 2_500


@pytest.fixture
def double(app: Tenure) -> Double:
    @app.task(name="double")
    def double(n: int) -> int:
        return 2 * n

    return double


def numbers(url: str) -> list[int]:
    """What was enqueued, in the order of the ids."""
    return [each["args"]["n"] for each in rows(url)]


async def test_many_calls_from_a_generator_are_enqueued_in_order(
    app: Tenure, double: Double, url: str
) -> None:
    handles = app.enqueue_many(double.bind(n) for n in range(MANY))
    assert len(handles) == MANY
    assert all(handle.created for handle in handles)
    by_id = {each["id"]: each["args"] for each in rows(url)}
    assert [by_id[handle.id] for handle in handles] == [{"n": n} for n in range(MANY)]
    assert [handle.id for handle in handles] == sorted(by_id)
    [one] = fetch(url, "SELECT count(DISTINCT xmin::text) AS transactions FROM tenure.job")
    assert one["transactions"] == 1


async def test_many_calls_are_enqueued_in_order_async(
    app: Tenure, double: Double, url: str
) -> None:
    handles = await app.aenqueue_many([double.bind(n) for n in range(MANY)])
    by_id = {each["id"]: each["args"]["n"] for each in rows(url)}
    assert [by_id[handle.id] for handle in handles] == list(range(MANY))


async def test_calls_of_several_tasks_with_and_without_keys_keep_their_order(
    app: Tenure, double: Double, url: str
) -> None:
    @app.task(name="greet")
    def greet(name: str) -> str:
        return name

    earlier = double.using(key="taken").enqueue(0)
    calls: list[BoundCall[Any]] = [
        double.bind(1),
        double.using(key="taken").bind(2),
        greet.using(queue="mail", priority=9).bind("Ada"),
        double.using(key="new").bind(3),
        double.bind(4),
        double.using(key="new").bind(5),
    ]
    handles = app.enqueue_many(calls)
    assert [handle.created for handle in handles] == [True, False, True, True, True, False]
    assert handles[1].id == earlier.id
    assert handles[5].id == handles[3].id
    by_id = {each["id"]: each["args"] for each in rows(url)}
    request = [{"n": 1}, {"n": 0}, {"name": "Ada"}, {"n": 3}, {"n": 4}, {"n": 3}]
    assert [by_id[handle.id] for handle in handles] == request


async def test_a_key_that_comes_again_in_a_later_batch_is_the_first_job(
    app: Tenure, double: Double, url: str
) -> None:
    """Shows R17."""
    handles = app.enqueue_many(double.using(key=str(n % 1_200)).bind(n) for n in range(MANY))
    assert [handle.created for handle in handles] == [n < 1_200 for n in range(MANY)]
    assert all(handles[n].id == handles[n % 1_200].id for n in range(MANY))
    assert sorted(numbers(url)) == list(range(1_200))


async def test_no_calls_make_no_jobs(app: Tenure, url: str) -> None:
    assert app.enqueue_many([]) == []
    assert await app.aenqueue_many(iter(())) == []
    assert rows(url) == []


def broken(double: Double, kind: str) -> Iterator[BoundCall[int]]:
    """More than two batches of calls, and then one that cannot be."""
    yield from (double.bind(n) for n in range(MANY - 1))
    wrong: Any = {
        "no call": 3,
        "handle": double,
        "signature": None,
        "payload": double.using().bind(b"x"),  # type: ignore[arg-type]  # The point.
        "option": double.using(priority=10).bind(1),
    }[kind]
    yield double.bind() if kind == "signature" else wrong  # type: ignore[call-arg]  # The point.


async def test_one_bad_call_among_many_leaves_none(app: Tenure, double: Double, url: str) -> None:
    for kind in ("no call", "handle", "signature", "payload", "option"):
        with pytest.raises((InvalidValue, PayloadError)):
            app.enqueue_many(broken(double, kind))
        with pytest.raises((InvalidValue, PayloadError)):
            await app.aenqueue_many(broken(double, kind))
        assert rows(url) == []
    app.enqueue_many([double.bind(1)])
    await app.aenqueue_many([double.bind(2)])
    assert numbers(url) == [1, 2]


async def test_calls_with_and_without_keys_before_a_bad_one_leave_none_either(
    app: Tenure, double: Double, url: str
) -> None:
    """Each batch is two statements then, and still no transaction of its own."""

    def calls() -> Iterator[BoundCall[int]]:
        for n in range(MANY):
            yield double.using(key=str(n) if n % 2 else None).bind(n)
        yield double.using(priority=10).bind(0)

    with pytest.raises(InvalidValue):
        app.enqueue_many(calls())
    with pytest.raises(InvalidValue):
        await app.aenqueue_many(calls())
    assert rows(url) == []
    [one] = fetch(url, "SELECT count(*) AS keys FROM tenure.job_key")
    assert one["keys"] == 0


async def test_an_error_of_the_callers_own_among_many_leaves_none(
    app: Tenure, double: Double, url: str
) -> None:
    def calls() -> Iterator[BoundCall[int]]:
        yield from (double.bind(n) for n in range(1_500))
        raise LookupError("the file ends here")

    with pytest.raises(LookupError):
        app.enqueue_many(calls())
    with pytest.raises(LookupError):
        await app.aenqueue_many(calls())
    assert rows(url) == []


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of ten, so that few calls are many batches."""
    monkeypatch.setattr("tenure._bulk_enqueue._BATCH", 10)


@pytest.mark.usefixtures("small")
async def test_more_batches_than_are_sent_at_once_keep_their_order(
    app: Tenure, double: Double, url: str
) -> None:
    """Also where those in the middle are not alike, or have keys, and go one by one."""

    def calls() -> Iterator[BoundCall[int]]:
        yield from (double.bind(n) for n in range(405))
        yield from (double.using(priority=n % 10).bind(n) for n in range(405, 430))
        yield double.using(key="one").bind(430)
        yield from (double.bind(n) for n in range(431, 700))

    handles = app.enqueue_many(calls())
    handles += await app.aenqueue_many(double.bind(n) for n in range(700, 1_100))
    by_id = {each["id"]: each["args"]["n"] for each in rows(url)}
    assert [by_id[handle.id] for handle in handles] == list(range(1_100))


@pytest.mark.usefixtures("small")
async def test_what_the_server_refuses_among_what_is_on_its_way_leaves_none(
    app: Tenure, double: Double, url: str
) -> None:
    """It is told as ever, and the connection serves on."""
    fetch(url, "ALTER TABLE tenure.job ADD CHECK (args <> '{\"n\": 77}')")
    serving = "SELECT pid FROM pg_stat_activity WHERE application_name = 'tenure' ORDER BY pid"
    app.enqueue_many([double.bind(0)])
    await app.aenqueue_many([double.bind(0)])
    before = fetch(url, serving)
    with pytest.raises(QueryFailed, match="check constraint") as refused:
        app.enqueue_many(double.bind(n) for n in range(300))
    with pytest.raises(QueryFailed, match="check constraint"):
        await app.aenqueue_many(double.bind(n) for n in range(300))
    assert (refused.value.statement, refused.value.sqlstate) == ("enqueue_alike", "23514")
    app.enqueue_many(double.bind(n) for n in range(50))
    assert len(rows(url)) == 52
    assert fetch(url, serving) == before


async def test_arguments_too_long_for_one_list_are_sent_in_several(
    app: Tenure, double: Double, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenure._store.postgres.jobs._LONGEST_LIST", 200)
    app.enqueue_many(double.bind(n) for n in range(300))
    assert numbers(url) == list(range(300))


def test_value_that_is_not_a_call_is_refused_with_the_fix(
    app: Tenure, double: Double, url: str
) -> None:
    wrong: Any = [double]
    with pytest.raises(InvalidValue, match=r"got <task double>; write task\.bind"):
        app.enqueue_many(wrong)


async def test_many_calls_join_the_callers_transaction(
    app: Tenure, double: Double, url: str
) -> None:
    with psycopg.connect(url) as connection:
        handles = app.enqueue_many((double.bind(n) for n in range(MANY)), connection=connection)
        assert len(handles) == MANY
        assert rows(url) == []
        connection.rollback()
        assert rows(url) == []
        app.enqueue_many([double.bind(1), double.bind(2)], connection=connection)
    async with await psycopg.AsyncConnection.connect(url) as aconnection:
        await app.aenqueue_many([double.bind(3)], connection=aconnection)
        assert numbers(url) == [1, 2]
    assert numbers(url) == [1, 2, 3]


@pytest.mark.parametrize("autocommit", [True, False])
async def test_one_bad_call_leaves_none_on_a_callers_connection_either(
    app: Tenure, double: Double, url: str, *, autocommit: bool
) -> None:
    """Not where every statement commits by itself, and not where the caller continues."""
    with psycopg.connect(url, autocommit=autocommit) as connection:
        with pytest.raises(PayloadError):
            app.enqueue_many(broken(double, "payload"), connection=connection)
        connection.commit()
    async with await psycopg.AsyncConnection.connect(url, autocommit=autocommit) as aconnection:
        with pytest.raises(PayloadError):
            await app.aenqueue_many(broken(double, "payload"), connection=aconnection)
        await aconnection.commit()
    assert rows(url) == []
