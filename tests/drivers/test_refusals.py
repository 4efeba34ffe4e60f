"""Connections that cannot be joined, and what is said to do instead."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import psycopg2
import pytest
from sqlalchemy import NullPool, create_engine
from sqlalchemy.orm import Session

from support.drivers import DRIVERS
from tenure.errors import InvalidValue

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Engine

    from tenure.task import Task


@contextmanager
def refused(words: str) -> Iterator[None]:
    with pytest.raises(InvalidValue, match=words):
        yield


def test_psycopg2_is_refused_with_what_to_install(hello: Task[[str], str, str], url: str) -> None:
    connection = psycopg2.connect(url)
    with refused(r"over psycopg2: .*pip install \"psycopg\[binary\]\""):
        hello.using(connection=connection).enqueue("Ada")
    connection.close()


def test_sqlalchemy_over_psycopg2_is_refused_likewise(
    hello: Task[[str], str, str], url: str
) -> None:
    engine = create_engine(
        url.replace("postgresql://", "postgresql+psycopg2://"), poolclass=NullPool
    )
    with Session(engine) as session, refused(r"Session over psycopg2: .*postgresql\+psycopg://"):
        hello.using(connection=session).enqueue("Ada")


def test_engine_is_not_a_connection(hello: Task[[str], str, str], engine: Engine) -> None:
    with refused(r"Engine here: pass a connection"):
        hello.using(connection=engine).enqueue("Ada")


async def test_a_sync_session_is_refused_in_async_code(
    hello: Task[[str], str, str], engine: Engine
) -> None:
    with Session(engine) as session, refused("would block the event loop; use the sync form"):
        await hello.using(connection=session).aenqueue("Ada")


@pytest.mark.parametrize("name", ["asyncpg", "SQLAlchemy AsyncSession, asyncpg"])
async def test_an_async_connection_is_refused_in_sync_code(
    hello: Task[[str], str, str], url: str, name: str
) -> None:
    [driver] = [d for d in DRIVERS if d.name == name]
    assert driver.aopened is not None
    async with driver.aopened(url) as (connection, _tell):
        with refused("it is async; await the async form"):
            hello.using(connection=connection).enqueue("Ada")


async def test_sqlalchemy_over_a_driver_that_cannot_is_refused(
    hello: Task[[str], str, str],
) -> None:
    session = Session(create_engine("sqlite://"))
    with session, refused(r"Session here: it uses a sqlite3"):
        hello.using(connection=session).enqueue("Ada")
