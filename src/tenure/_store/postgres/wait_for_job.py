"""Waiting for a job's end: woken by the settle that ends it, with a slow poll beneath."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from time import monotonic

import psycopg
from psycopg import sql

from tenure._model.ids import JobId
from tenure._model.job import JobRow
from tenure._store.postgres.connections import (
    AsyncDetectingConnection,
    DetectingConnection,
    aconnect,
    connect,
)
from tenure._store.postgres.sessions import AsyncSession, Session
from tenure._store.postgres.store import PostgresStore
from tenure.errors import Unreachable

# What ends a job otherwise than by a settle (a cancel, a rescue) tells nobody.
_POLL = 1.0
# Through a pooler nobody is woken, so that short jobs are looked at sooner.
_FIRST_POLL = 0.05


def wait(url: str, store: PostgresStore, job_id: JobId, timeout: float | None) -> JobRow | None:
    """The job once it has ended, or as it is when the time is up; None if there is none."""
    until = None if timeout is None else monotonic() + timeout
    row: JobRow | None = None
    # A connection of the wait's own: those of the pool are for who asks and goes.
    with connect(url) as connection, _our_errors():
        session = Session(connection, schema=store.schema)
        if not connection.behind_pooler:
            connection.execute(_listen(store))
        for _ in _told(connection, job_id, until):
            row = session.run(store.wait(job_id))
            if row is None or not row.state.is_live:
                break
        return row


def _told(connection: DetectingConnection, job_id: JobId, until: float | None) -> Iterator[None]:
    """Once at first, then whenever the job may have ended, until the time is up."""
    yield
    poll = _FIRST_POLL
    while (left := _left(until)) > 0:
        if connection.behind_pooler:
            time.sleep(min(left, poll))
            poll = min(2 * poll, _POLL)
            yield
            continue
        for notify in connection.notifies(timeout=min(left, _POLL)):
            if notify.payload == str(job_id):
                break
        yield


async def wait_async(
    url: str,
    store: PostgresStore,
    job_id: JobId,
    timeout: float | None,  # noqa: ASYNC109 - what is waited for is told when the time is up
) -> JobRow | None:
    """The same in the async world."""
    until = None if timeout is None else monotonic() + timeout
    row: JobRow | None = None
    connection = await aconnect(url)
    try:
        with _our_errors():
            session = AsyncSession(connection, schema=store.schema)
            if not connection.behind_pooler:
                await connection.execute(_listen(store))
            async for _ in _atold(connection, job_id, until):
                row = await session.run(store.wait(job_id))
                if row is None or not row.state.is_live:
                    break
            return row
    finally:
        await connection.close()


@contextmanager
def _our_errors() -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        raise Unreachable(f"the connection broke while waiting: {error}; wait again") from error


async def _atold(
    connection: AsyncDetectingConnection, job_id: JobId, until: float | None
) -> AsyncIterator[None]:
    yield
    poll = _FIRST_POLL
    while (left := _left(until)) > 0:
        if connection.behind_pooler:
            await asyncio.sleep(min(left, poll))
            poll = min(2 * poll, _POLL)
            yield
            continue
        async for notify in connection.notifies(timeout=min(left, _POLL)):
            if notify.payload == str(job_id):
                break
        yield


def _left(until: float | None) -> float:
    return _POLL if until is None else until - monotonic()


def _listen(store: PostgresStore) -> sql.Composed:
    return sql.SQL("LISTEN {}").format(sql.Identifier(store.ended_channel))
