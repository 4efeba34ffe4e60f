"""Django's connections around a handler, as Django itself treats them around a request.

One that is broken or older than CONN_MAX_AGE is closed before the handler and after it, in the
thread that has it. So a thread keeps at most one per database, and none with CONN_MAX_AGE = 0.
"""

from collections.abc import AsyncIterator, Iterator

from asgiref.sync import sync_to_async
from django.db import connections, reset_queries

from tenure import AsyncJob, Job


def in_thread(_job: Job) -> Iterator[None]:
    """Middleware for a `def`: the connections of its thread."""
    _begin()
    try:
        yield
    finally:
        _close_old()


async def on_loop(_job: AsyncJob) -> AsyncIterator[None]:
    """Middleware for an `async def`: the connections of the one thread on which async code
    reaches Django's database."""
    await sync_to_async(_begin)()
    try:
        yield
    finally:
        await sync_to_async(_close_old)()


def _begin() -> None:
    # With DEBUG, Django notes every query; a worker never ends, and neither would the notes.
    reset_queries()
    _close_old()


def _close_old() -> None:
    """As Django does after a request; but not where a test runs the handler inside a transaction
    of its own."""
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            connection.close_if_unusable_or_obsolete()
