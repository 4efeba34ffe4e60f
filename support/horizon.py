"""A horizon that is pinned, and dead entries in the queues' index that vacuum cannot remove."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

import psycopg

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

_BATCH = 500_000
_ADD = """
INSERT INTO tenure.job (queue, task, args, priority, created_at, run_at, max_attempts, max_losses)
SELECT %(queue)s, %(task)s, '{}', 5, now(), %(at)s::timestamptz + n * interval '1 microsecond', 3, 3
FROM generate_series(1, %(count)s) AS n
"""


@contextmanager
def pinned(url: str) -> Iterator[None]:
    """A transaction that stays open and has a snapshot: nothing that dies later is removed."""
    with psycopg.connect(url) as pinning:
        pinning.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        pinning.execute("SELECT count(*) FROM tenure.job")
        yield
        pinning.rollback()


def add_due(url: str, queue: str, count: int, at: datetime, task: str = "noop") -> None:
    """That many jobs, due one microsecond after the other from this instant on."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(_ADD, {"queue": queue, "task": task, "count": count, "at": at})


def add_dead(url: str, queue: str, count: int, at: datetime) -> None:
    """That many entries of jobs that were due then and are gone."""
    with psycopg.connect(url, autocommit=True) as connection:
        for start in range(0, count, _BATCH):
            lower = at + timedelta(microseconds=start)
            add_due(url, queue, min(_BATCH, count - start), lower, "gone")
            connection.execute("DELETE FROM tenure.job WHERE task = 'gone'")
