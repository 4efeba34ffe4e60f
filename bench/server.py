"""The server of a run: private, with fsync on, and databases made from one template."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import psycopg

from bench.subjects import Bare, Tenure
from support.cluster import Cluster
from support.databases import Databases
from support.store import install
from tenure._store.postgres.connections import connect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from psycopg import Connection

SETTINGS = {
    "fsync": "on",
    "full_page_writes": "on",
    "shared_buffers": "1GB",
    "max_wal_size": "8GB",
    "checkpoint_timeout": "30min",
    "max_connections": "200",
}

_LAST_WORDS = 4000


class Server:
    """One cluster; databases with Tenure's schema and the bare one beside it."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._databases = Databases(cluster)

    def database(self, template: str | None = None) -> str:
        """The URL of a fresh database, copied from a template."""
        return self._databases.create(template or self._databases.template("bench", _prepare))

    def prepared(self, name: str, prepare: Callable[[str], None]) -> str:
        """The URL of a fresh database, copied from one that was prepared once in this run."""
        return self._databases.create(self._databases.template(name, prepare))

    def drop(self, url: str) -> None:
        self._databases.drop(url)

    def tenure(self, url: str, **kwargs: Any) -> Tenure:
        return Tenure(connect(url, name="tenure"), **kwargs)

    def bare(self, url: str) -> Bare:
        return Bare(connect(url, name="bare"))

    def admin(self, url: str) -> Connection[Any]:
        return psycopg.connect(url, autocommit=True)


def _prepare(url: str) -> None:
    install(url)
    with connect(url) as connection:
        Bare(connection).install()


@contextmanager
def server(**settings: str) -> Iterator[Server]:
    with Cluster(15, settings=SETTINGS | settings) as cluster:
        try:
            yield Server(cluster)
        except BaseException:
            print(f"The database's last words:\n{cluster.log()[-_LAST_WORDS:]}", file=sys.stderr)
            raise
