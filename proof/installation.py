"""A private server, one database, and one worker that is killed and replaced."""

from __future__ import annotations

import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg.rows import dict_row

from support.cluster import Cluster
from support.databases import Databases
from support.store import install
from support.workers import Worker
from tenure.admin import connect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tenure.admin import Admin
    from tenure.types import OperationRow

_SETTINGS = {"max_connections": "100", "shared_buffers": "256MB"}


@dataclass
class Installation:
    """One database with one worker, which is replaced when it is killed."""

    url: str
    directory: Path
    admin: Admin
    start_worker: Callable[[], Worker]
    worker: Worker

    def rows(self, query: str, **parameters: object) -> list[dict[str, Any]]:
        """What a query answers, over a connection of its own."""
        with psycopg.connect(self.url, autocommit=True, row_factory=dict_row) as connection:
            cursor = connection.execute(query.encode(), parameters)
            return cursor.fetchall() if cursor.description else []

    def operation(self, started: OperationRow) -> OperationRow:
        """The operation as it is now."""
        row = self.admin.operations.get(started.id)
        if row is None:
            raise AssertionError("it was there")
        return row

    def replace_worker(self) -> None:
        """Start another worker; the last one was killed."""
        self.worker = self.start_worker()

    def wait_until(self, there: Callable[[], bool], within: float, *, look: float) -> None:
        """Return once it is there, which is looked at again after `look` seconds."""
        deadline = time.monotonic() + within
        while not there():
            if time.monotonic() > deadline:
                raise RuntimeError(f"it does not continue; see {self.directory}")
            time.sleep(look)


@contextmanager
def installed(target: str, queues: str) -> Iterator[Installation]:
    """A new installation, with a worker for this app and these queues."""
    with (
        tempfile.TemporaryDirectory(prefix="tenure-proof-") as directory,
        Cluster(15, settings=_SETTINGS) as cluster,
    ):
        databases = Databases(cluster)
        url = databases.create(databases.template("tenure", install))

        def start() -> Worker:
            return Worker(target, url, Path(directory), None, queues=queues)

        with connect(url) as admin:
            made = Installation(url, Path(directory), admin, start, start())
            try:
                yield made
            finally:
                made.worker.kill()
