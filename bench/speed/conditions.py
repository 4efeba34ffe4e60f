"""Conditions for a drain: what else the tables hold or the server does.

Each is made once in a database of its own; background load runs while it is measured.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import psycopg

from bench.flatness import ARCHIVE
from bench.renewing import EACH, EVERY, hold
from bench.subjects import QUEUE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager, ExitStack

    from bench.server import Server

    Connection = psycopg.Connection[Any]
    Meanwhile = Callable[[Server, str], AbstractContextManager[object]]

_FILL = """
INSERT INTO tenure.job (queue, task, args, priority, created_at, run_at, max_attempts, max_losses)
SELECT %(queue)s, 'noop', '{}', 5, now(), now() + %(after)s::interval + n * interval '1 us', 3, 3
FROM generate_series(1, %(count)s) AS n
"""
_CLAIM = """
UPDATE tenure.job SET state = 'running', token = 1, attempt = 1, claimed_at = clock_timestamp(),
    claimed_by = gen_random_uuid(), lease_expires_at = clock_timestamp() + interval '1 second'
"""
_CHURN = 5_000


def quiet(server: Server, url: str) -> AbstractContextManager[object]:
    """Run no background load."""
    del server, url
    return nullcontext()


@dataclass(frozen=True)
class Condition:
    """Its name, what is made before, and what runs meanwhile."""

    name: str
    prepare: Callable[[Connection, ExitStack], None]
    meanwhile: Meanwhile = quiet


def fill(connection: Connection, count: int, after: str = "0 s") -> None:
    """Enqueue this many no-op jobs that are due after this delay."""
    connection.execute(_FILL, {"queue": QUEUE, "count": count, "after": after})


def empty() -> Condition:
    """What all others are held against."""
    return Condition("empty", _nothing)


def due(count: int) -> Condition:
    """This many jobs wait already."""

    def prepare(connection: Connection, stack: ExitStack) -> None:
        fill(connection, count, "-1 day")
        _nothing(connection, stack)

    return Condition(f"{count:,} due", prepare)


def later(count: int) -> Condition:
    """This many jobs are due tomorrow."""

    def prepare(connection: Connection, stack: ExitStack) -> None:
        fill(connection, count, "1 day")
        _nothing(connection, stack)

    return Condition(f"{count:,} scheduled", prepare)


def archived(count: int) -> Condition:
    """This many jobs are done, with their attempts."""

    def prepare(connection: Connection, stack: ExitStack) -> None:
        connection.execute(ARCHIVE, {"count": count})
        _nothing(connection, stack)

    return Condition(f"{count:,} archived", prepare)


def pinned(count: int) -> Condition:
    """A transaction is left open while this many jobs pass: nothing that they leave in the
    table and its indexes can be removed."""

    def prepare(connection: Connection, stack: ExitStack) -> None:
        _nothing(connection, stack)
        horizon = stack.enter_context(psycopg.connect(connection.info.dsn))
        horizon.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        horizon.execute("SELECT count(*) FROM tenure.job")
        for _ in range(count // _CHURN):
            fill(connection, _CHURN)
            connection.execute(_CLAIM)
            connection.execute("DELETE FROM tenure.job")

    return Condition(f"horizon pinned over {count:,}", prepare)


def held(workers: int) -> Condition:
    """As many others hold 100 leases each, and renew them."""
    return Condition(
        f"{workers * EACH:,} leases held by others", _nothing, partial(_renewing, workers)
    )


def _nothing(connection: Connection, stack: ExitStack) -> None:
    del stack
    connection.execute("VACUUM ANALYZE")


@contextmanager
def _renewing(workers: int, server: Server, url: str) -> Iterator[None]:
    tenure, stop = server.tenure(url), threading.Event()
    batches = hold(tenure, workers)

    def renew() -> None:
        while True:
            for batch in batches:
                if stop.wait(EVERY / len(batches)):
                    return
                tenure.session.run(tenure.store.leases.renew(batch))

    thread = threading.Thread(target=renew)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        tenure.connection.close()
        with server.admin(url) as admin:
            admin.execute("DELETE FROM tenure.job WHERE state = 'running'")
