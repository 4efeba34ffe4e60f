"""What is peculiar to SQLAlchemy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
import pytest
from sqlalchemy import NullPool, text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.orm import (
    DeclarativeBase,
    Mapped,  # noqa: TC002 - the class is read at run time
    Session,
    mapped_column,
    scoped_session,
    sessionmaker,
)

from tests.drivers.conftest import committed

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from tenure.task import Task


class Base(DeclarativeBase):
    """The user's tables."""


class Entry(Base):
    """A line of the ledger."""

    __tablename__ = "ledger"
    entry: Mapped[str] = mapped_column(primary_key=True)


def test_a_connection_that_has_not_begun_commits_what_was_enqueued(
    hello: Task[[str], str, str], engine: Engine, url: str
) -> None:
    """Commit as you go: without telling SQLAlchemy, its commit() would do nothing."""
    with engine.connect() as connection:
        hello.using(connection=connection).enqueue("Ada")
        connection.commit()
        hello.using(connection=connection).enqueue("Bob")
    assert committed(url) == (0, 1)


async def test_so_does_an_async_one(hello: Task[[str], str, str], url: str) -> None:
    for driver in ("psycopg", "asyncpg"):
        aengine = create_async_engine(
            url.replace("postgresql://", f"postgresql+{driver}://"), poolclass=NullPool
        )
        async with aengine.connect() as connection:
            await hello.using(connection=connection).aenqueue("Ada")
            await connection.commit()
            await hello.using(connection=connection).aenqueue("Bob")
    assert committed(url) == (0, 2)


def test_a_scoped_session_is_a_session(
    hello: Task[[str], str, str], engine: Engine, url: str
) -> None:
    session = scoped_session(sessionmaker(engine))
    hello.using(connection=session).enqueue("Ada")
    session.commit()
    session.remove()
    assert committed(url) == (0, 1)


def test_what_the_session_holds_is_written_first(
    hello: Task[[str], str, str], engine: Engine, url: str
) -> None:
    """So that what is wrong with it shows before a job stands on it."""
    with psycopg.connect(url) as connection:
        connection.execute("CREATE UNIQUE INDEX ON ledger (entry)")
        connection.execute("INSERT INTO ledger VALUES ('paid')")
    with Session(engine) as session:
        session.add(Entry(entry="paid"))
        with pytest.raises(IntegrityError):
            hello.using(connection=session).enqueue("Ada")
        session.rollback()
        session.add(Entry(entry="unpaid"))
        with session.no_autoflush:
            hello.using(connection=session).enqueue("Ada")
        assert session.new
        session.commit()
    assert committed(url) == (2, 1)


def test_a_savepoint_takes_the_enqueue_back_alone(
    hello: Task[[str], str, str], engine: Engine, url: str
) -> None:
    with Session(engine) as session, session.begin():
        session.execute(text("INSERT INTO ledger VALUES ('kept')"))
        inner = session.begin_nested()
        hello.using(connection=session).enqueue("Ada")
        inner.rollback()
    assert committed(url) == (1, 0)


def test_an_engine_in_autocommit_enqueues_at_once(
    hello: Task[[str], str, str], engine: Engine, url: str
) -> None:
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        hello.using(connection=connection).enqueue("Ada")
        assert committed(url) == (0, 1)
