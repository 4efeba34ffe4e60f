"""What is peculiar to asyncpg."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import asyncpg
import pytest

from tenure import Tenure
from tenure._store.postgres.drivers.asyncpg import as_texts
from tenure._store.postgres.statements import statements
from tenure.errors import SchemaTooOld, Unreachable
from tests.drivers.conftest import committed, one

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tenure.task import Task


@pytest.fixture
async def apg(url: str) -> AsyncIterator[Any]:
    """A connection of asyncpg."""
    connection = await asyncpg.connect(url)
    yield connection
    await connection.close()


async def test_every_statement_says_the_type_of_every_parameter(apg: Any) -> None:
    """So that each can be sent as text, and cast there."""
    for statement in statements("tenure").values():
        await apg.prepare(as_texts(statement.text))


async def test_a_callers_codec_does_not_change_what_is_stored(
    hello: Task[[str], str, str], apg: Any, url: str
) -> None:
    await apg.set_type_codec("jsonb", encoder=json.dumps, decoder=json.loads, schema="pg_catalog")
    await hello.using(connection=apg, tags=["x"]).aenqueue("Ada")

    assert one(url, "SELECT args ->> 'name' FROM tenure.job") == "Ada"
    assert one(url, "SELECT meta #>> '{tags,0}' FROM tenure.job") == "x"


async def test_a_day_is_twenty_four_hours_whatever_the_callers_zone(
    hello: Task[[str], str, str], apg: Any, url: str
) -> None:
    """Else a delay across the end of summer time would be an hour longer there."""
    await apg.execute("SET timezone = 'Europe/Berlin'")
    await hello.using(connection=apg, delay=timedelta(days=365), key="k").aenqueue("Ada")

    assert one(url, "SELECT run_at - created_at FROM tenure.job") == timedelta(days=365)
    assert one(url, "SELECT extract(hour FROM max(run_at - created_at)) FROM tenure.job") == 0


async def test_outside_a_transaction_an_enqueue_is_durable_at_once(
    hello: Task[[str], str, str], apg: Any, url: str
) -> None:
    await hello.using(connection=apg).aenqueue("Ada")
    assert committed(url) == (0, 1)


async def test_many_calls_join_as_one(
    app: Tenure, hello: Task[[str], str, str], apg: Any, url: str
) -> None:
    async with apg.transaction():
        calls = [hello.bind("Ada"), hello.using(key="k").bind("Bob")]
        handles = await app.aenqueue_many(calls, connection=apg)
        assert committed(url) == (0, 0)
    assert (len(handles), committed(url)) == (2, (0, 2))


async def test_a_database_that_was_not_migrated_is_named_as_such(
    empty_database: str,
) -> None:
    app = Tenure(empty_database)

    @app.task
    def hello() -> None: ...

    connection = await asyncpg.connect(empty_database)
    with pytest.raises(SchemaTooOld, match="tenure db migrate"):
        await hello.using(connection=connection).aenqueue()
    await connection.close()
    with pytest.raises(Unreachable, match="closed"):
        await hello.using(connection=connection).aenqueue()


async def test_lost_server_is_reported(hello: Task[[str], str, str], apg: Any, url: str) -> None:
    pid = apg.get_server_pid()
    await apg.execute("BEGIN")
    one(url, f"SELECT pg_terminate_backend({pid}, 5000)")
    with pytest.raises(Unreachable, match="nothing was changed"):
        await hello.using(connection=apg).aenqueue("Ada")
