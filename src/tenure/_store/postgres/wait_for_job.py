"""Wait for a job to end.

The statement that ends the job wakes the caller. A slow poll serves as a fallback.
"""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic

import psycopg
from psycopg import sql

from tenure._model.ids import JobId
from tenure._model.job import JobRow
from tenure._store.postgres.connections import aconnect, connect
from tenure._store.postgres.jobs import JobQueries
from tenure._store.postgres.sessions import AsyncSession, Session
from tenure.errors import OutcomeUnknown, Unreachable

# A job that ends without a settle (a cancel, a rescue) sends no notification.
_POLL = 1.0
# There are no notifications behind a pooler, so short jobs are polled sooner.
_FIRST_POLL = 0.05


def wait(url: str, jobs: JobQueries, job_id: JobId, timeout: float | None) -> JobRow | None:
    until = None if timeout is None else monotonic() + timeout
    # Use a separate connection: pooled ones are for short use.
    with connect(url) as connection, _our_errors():
        session = Session(connection, schema=jobs.schema)
        if not connection.behind_pooler:
            connection.execute(_listen(jobs))
        pauses = _pauses(until, behind_pooler=connection.behind_pooler)
        while True:
            row = session.run(jobs.wait(job_id))
            pause = next(pauses, None) if _is_live(row) else None
            if pause is None:
                return row
            if connection.behind_pooler:
                time.sleep(pause)
                continue
            for notify in connection.notifies(timeout=pause):
                if notify.payload == str(job_id):
                    break


async def wait_async(
    url: str,
    jobs: JobQueries,
    job_id: JobId,
    timeout: float | None,  # noqa: ASYNC109 - at the timeout it returns the job
) -> JobRow | None:
    until = None if timeout is None else monotonic() + timeout
    connection = await aconnect(url)
    try:
        with _our_errors():
            session = AsyncSession(connection, schema=jobs.schema)
            if not connection.behind_pooler:
                await connection.execute(_listen(jobs))
            pauses = _pauses(until, behind_pooler=connection.behind_pooler)
            while True:
                row = await session.run(jobs.wait(job_id))
                pause = next(pauses, None) if _is_live(row) else None
                if pause is None:
                    return row
                if connection.behind_pooler:
                    await asyncio.sleep(pause)
                    continue
                async for notify in connection.notifies(timeout=pause):
                    if notify.payload == str(job_id):
                        break
    finally:
        await connection.close()


def _is_live(row: JobRow | None) -> bool:
    return row is not None and row.state.is_live


def _pauses(until: float | None, *, behind_pooler: bool) -> Iterator[float]:
    """Yield how long to wait before each read after the first, until time is up."""
    poll = _FIRST_POLL if behind_pooler else _POLL
    while (left := _POLL if until is None else until - monotonic()) > 0:
        yield min(left, poll)
        poll = min(2 * poll, _POLL)


@contextmanager
def _our_errors() -> Iterator[None]:
    try:
        yield
    # A wait writes nothing, so its outcome is never unknown.
    except (psycopg.Error, OutcomeUnknown) as error:
        raise Unreachable(f"the connection broke while waiting: {error}; wait again") from error


def _listen(jobs: JobQueries) -> sql.Composed:
    return sql.SQL("LISTEN {}").format(sql.Identifier(jobs.ended_channel))
