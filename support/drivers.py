"""Every driver whose transactions can be joined, as its users would open one: a connection to
pass on, and a way to say something through it. A clean end commits, an error rolls back.

Each imports its driver when it is opened: workers that use one need not load them all.
"""

from __future__ import annotations

from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import psycopg

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
    from contextlib import AbstractAsyncContextManager, AbstractContextManager

    Say = Callable[[str], object]
    Tell = Callable[[str], Awaitable[object]]
    Opened = AbstractContextManager[tuple[Any, Say]]
    AsyncOpened = AbstractAsyncContextManager[tuple[Any, Tell]]


@dataclass(frozen=True, slots=True)
class Driver:
    """A driver with a way to open a transaction, sync or async."""

    name: str
    opened: Callable[[str], Opened] | None = None
    aopened: Callable[[str], AsyncOpened] | None = None


@contextmanager
def _psycopg(url: str) -> Iterator[tuple[Any, Say]]:
    with psycopg.connect(url) as connection:
        yield connection, lambda text: connection.execute(text.encode())


@asynccontextmanager
async def _apsycopg(url: str) -> AsyncIterator[tuple[Any, Tell]]:
    async with await psycopg.AsyncConnection.connect(url) as connection:
        yield connection, lambda text: connection.execute(text.encode())


@asynccontextmanager
async def _asyncpg(url: str) -> AsyncIterator[tuple[Any, Tell]]:
    import asyncpg

    connection = await asyncpg.connect(url)
    try:
        async with connection.transaction():
            yield connection, connection.execute
    finally:
        await connection.close()


@asynccontextmanager
async def _asyncpg_pool(url: str) -> AsyncIterator[tuple[Any, Tell]]:
    import asyncpg

    async with (
        asyncpg.create_pool(url, min_size=1, max_size=1) as pool,
        pool.acquire() as connection,
        connection.transaction(),
    ):
        yield connection, connection.execute


def _over(url: str, driver: str) -> str:
    return url.replace("postgresql://", f"postgresql+{driver}://", 1)


@contextmanager
def _sqlalchemy_connection(url: str) -> Iterator[tuple[Any, Say]]:
    from sqlalchemy import NullPool, create_engine

    engine = create_engine(_over(url, "psycopg"), poolclass=NullPool)
    with engine.begin() as connection:
        yield connection, connection.exec_driver_sql


@contextmanager
def _sqlalchemy_session(url: str) -> Iterator[tuple[Any, Say]]:
    from sqlalchemy import NullPool, create_engine
    from sqlalchemy.orm import Session

    engine = create_engine(_over(url, "psycopg"), poolclass=NullPool)
    with Session(engine) as session, session.begin():
        yield session, lambda text: session.connection().exec_driver_sql(text)


def _async_sqlalchemy_connection(driver: str) -> Callable[[str], AsyncOpened]:
    @asynccontextmanager
    async def opened(url: str) -> AsyncIterator[tuple[Any, Tell]]:
        from sqlalchemy import NullPool
        from sqlalchemy.ext.asyncio import create_async_engine

        engine = create_async_engine(_over(url, driver), poolclass=NullPool)
        async with engine.begin() as connection:
            yield connection, connection.exec_driver_sql

    return opened


def _async_sqlalchemy_session(driver: str) -> Callable[[str], AsyncOpened]:
    @asynccontextmanager
    async def opened(url: str) -> AsyncIterator[tuple[Any, Tell]]:
        from sqlalchemy import NullPool
        from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

        engine = create_async_engine(_over(url, driver), poolclass=NullPool)
        async with AsyncSession(engine) as session, session.begin():

            async def tell(text: str) -> object:
                return await (await session.connection()).exec_driver_sql(text)

            yield session, tell

    return opened


def django_database(url: str) -> str:
    """The alias under which Django knows this database from now on."""
    from django.db import connections

    from support import django_project

    django_project.configure()
    database = django_project.as_django_says(url)
    configured = connections.configure_settings({"default": {}, url: database})
    connections.settings[url] = configured[url]
    return url


@contextmanager
def _django(url: str) -> Iterator[tuple[Any, Say]]:
    from django.db import connections, transaction

    connection = connections[django_database(url)]
    try:
        with transaction.atomic(using=url):
            yield connection, lambda text: connection.cursor().execute(text)
    finally:
        connection.close()


DRIVERS = [
    Driver("psycopg", _psycopg),
    Driver("psycopg, async", aopened=_apsycopg),
    Driver("asyncpg", aopened=_asyncpg),
    Driver("asyncpg, from a pool", aopened=_asyncpg_pool),
    Driver("SQLAlchemy Connection, psycopg", _sqlalchemy_connection),
    Driver("SQLAlchemy Session, psycopg", _sqlalchemy_session),
    Driver("SQLAlchemy AsyncConnection, psycopg", aopened=_async_sqlalchemy_connection("psycopg")),
    Driver("SQLAlchemy AsyncSession, psycopg", aopened=_async_sqlalchemy_session("psycopg")),
    Driver("SQLAlchemy AsyncConnection, asyncpg", aopened=_async_sqlalchemy_connection("asyncpg")),
    Driver("SQLAlchemy AsyncSession, asyncpg", aopened=_async_sqlalchemy_session("asyncpg")),
    Driver("Django, transaction.atomic", _django),
]
