"""A caller's own connection: the job is made by its COMMIT and unmade by its ROLLBACK."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from psycopg.rows import dict_row

from tenure import Tenure
from tenure.errors import InvalidValue, QueryFailed, Unreachable
from tests.app.acts import connections, fetch, rows

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from tenure.task import Task

    Hello = Task[[str], str, str]


@pytest.fixture
def hello(app: Tenure) -> Hello:
    @app.task(name="hello")
    def hello(name: str) -> str:
        return f"Hello {name}"

    return hello


@pytest.fixture
def connection(url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(url, application_name="caller") as connection:
        yield connection


@pytest.fixture
async def aconnection(url: str) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    async with await psycopg.AsyncConnection.connect(url, application_name="caller") as connection:
        yield connection


async def test_a_commit_makes_the_job(
    hello: Hello, connection: psycopg.Connection[Any], url: str
) -> None:
    """Shows R20."""
    fetch(url, "CREATE TABLE customer (name text)")
    with connection.transaction():
        connection.execute("INSERT INTO customer VALUES ('Ada')")
        handle = hello.using(connection=connection).enqueue("Ada")
        assert handle.created
        assert rows(url) == []
        assert handle.get() is None
    assert [each["id"] for each in rows(url)] == [handle.id]
    assert fetch(url, "SELECT name FROM customer") == [{"name": "Ada"}]
    assert handle.get() is not None


async def test_a_rollback_unmakes_the_job(
    hello: Hello, connection: psycopg.Connection[Any], url: str
) -> None:
    """Shows R20."""
    with connection.transaction(force_rollback=True):
        hello.using(connection=connection).enqueue("Ada")
        hello.using(connection=connection, key="k").enqueue("Bob")
    assert rows(url) == []
    assert hello.using(key="k").enqueue("Bob").created


async def test_commit_makes_the_job_async(
    hello: Hello, aconnection: psycopg.AsyncConnection[Any], url: str
) -> None:
    """Shows R20."""
    async with aconnection.transaction():
        handle = await hello.using(connection=aconnection).aenqueue("Ada")
        assert rows(url) == []
    assert [each["id"] for each in rows(url)] == [handle.id]


async def test_rollback_removes_the_job_async(
    hello: Hello, aconnection: psycopg.AsyncConnection[Any], url: str
) -> None:
    """Shows R20."""
    async with aconnection.transaction(force_rollback=True):
        await hello.using(connection=aconnection, key="k").aenqueue("Ada")
    assert rows(url) == []


async def test_a_savepoint_unmakes_only_what_is_within(
    hello: Hello, connection: psycopg.Connection[Any], url: str
) -> None:
    with connection.transaction():
        hello.using(connection=connection).enqueue("Ada")
        with connection.transaction(force_rollback=True):
            hello.using(connection=connection).enqueue("Bob")
    assert [each["args"] for each in rows(url)] == [{"name": "Ada"}]


async def test_the_callers_transaction_is_open_from_the_first_enqueue(
    hello: Hello, connection: psycopg.Connection[Any], url: str
) -> None:
    hello.using(connection=connection).enqueue("Ada")
    assert rows(url) == []
    connection.commit()
    assert len(rows(url)) == 1


async def test_on_a_connection_in_autocommit_the_job_is_made_at_once(
    hello: Hello, connection: psycopg.Connection[Any], url: str
) -> None:
    connection.autocommit = True
    hello.using(connection=connection).enqueue("Ada")
    assert len(rows(url)) == 1


async def test_no_connection_of_our_own_is_opened_for_it(
    hello: Hello, connection: psycopg.Connection[Any], url: str
) -> None:
    hello.using(connection=connection).enqueue("Ada")
    assert [each["application_name"] for each in connections(url)] == ["caller"]


async def test_the_callers_settings_stay_as_they_were(hello: Hello, url: str) -> None:
    show = "SELECT string_agg(name || setting, ',' ORDER BY name) AS all FROM pg_settings"
    with psycopg.connect(url, row_factory=dict_row) as connection:
        before = connection.execute(show).fetchone()
        hello.using(connection=connection, key="k").enqueue("Ada")
        assert connection.execute(show).fetchone() == before
        connection.commit()
        assert connection.execute(show).fetchone() == before
        assert connection.row_factory is dict_row


async def test_a_key_that_is_taken_answers_within_the_callers_transaction_too(
    hello: Hello, connection: psycopg.Connection[Any]
) -> None:
    """Shows R17."""
    first = hello.using(key="k").enqueue("Ada")
    second = hello.using(key="k", connection=connection).enqueue("Bob")
    assert (second.id, second.created) == (first.id, False)


class Session:
    """A connection of a library that is not known."""


STRANGERS = [Session(), sqlite3.connect, "postgresql://host/db", 3]


@pytest.mark.parametrize("stranger", STRANGERS, ids=["class", "function", "url", "number"])
async def test_a_connection_of_a_kind_that_is_not_known_is_refused_with_what_to_give(
    stranger: object,
) -> None:
    app = Tenure("postgresql://nobody@nowhere/nothing")

    @app.task
    def hello(name: str) -> str:
        return f"Hello {name}"

    call = hello.using(connection=stranger)
    name = type(stranger).__qualname__
    with pytest.raises(InvalidValue, match=rf"transaction of a .*{name} .*Session of SQLAlchemy"):
        call.enqueue("Ada")
    with pytest.raises(InvalidValue, match=rf"of a .*{name} .*AsyncSession of SQLAlchemy"):
        await call.aenqueue("Ada")


async def test_a_connection_of_the_other_world_is_refused_with_what_to_give(
    hello: Hello,
    connection: psycopg.Connection[Any],
    aconnection: psycopg.AsyncConnection[Any],
    url: str,
) -> None:
    with pytest.raises(InvalidValue, match=r"AsyncConnection .* it is async; .*aenqueue"):
        hello.using(connection=aconnection).enqueue("Ada")
    with pytest.raises(InvalidValue, match=r"Connection .* would block the event loop; .*enqueue"):
        await hello.using(connection=connection).aenqueue("Ada")
    connection.commit()
    await aconnection.commit()
    assert rows(url) == []


async def test_a_callers_connection_that_is_closed_says_that_nothing_was_done(
    hello: Hello, connection: psycopg.Connection[Any], url: str
) -> None:
    connection.close()
    with pytest.raises(Unreachable, match="nothing was changed"):
        hello.using(connection=connection).enqueue("Ada")
    assert rows(url) == []


async def test_in_a_transaction_that_has_failed_the_enqueue_fails_too(
    hello: Hello, connection: psycopg.Connection[Any], url: str
) -> None:
    with pytest.raises(psycopg.errors.DivisionByZero):
        connection.execute("SELECT 1 / 0")
    with pytest.raises(QueryFailed, match="25P02"):
        hello.using(connection=connection).enqueue("Ada")
    connection.rollback()
    hello.using(connection=connection).enqueue("Ada")
    connection.commit()
    assert len(rows(url)) == 1


async def test_a_refused_call_does_not_disturb_the_callers_transaction(
    hello: Hello, connection: psycopg.Connection[Any], url: str
) -> None:
    with connection.transaction():
        hello.using(connection=connection).enqueue("Ada")
        with pytest.raises(InvalidValue):
            hello.using(connection=connection, priority=10).enqueue("Bob")
    assert [each["args"] for each in rows(url)] == [{"name": "Ada"}]


async def test_a_connection_in_a_call_among_many_is_refused_and_not_passed_over(
    app: Tenure, hello: Hello, connection: psycopg.Connection[Any]
) -> None:
    """enqueue_many is told its connection itself; the job would be made outside the transaction."""
    call = hello.using(connection=connection).bind("Ada")
    with pytest.raises(InvalidValue, match="connection"):
        app.enqueue_many([call])
