"""Makes and drops databases on a cluster, cheaply, from templates. Knows no schema."""

from __future__ import annotations

import itertools
import os
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.cluster import Cluster


class Databases:
    """The databases of one cluster; names are never used twice."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._templates: set[str] = set()
        self._numbers = itertools.count(1)

    def template(self, name: str, prepare: Callable[[str], None]) -> str:
        """Make the template once, by calling `prepare` with its URL; return its name.

        `prepare` must have closed its connections when it returns: PostgreSQL copies no
        database that is in use.
        """
        if name not in self._templates:
            self._execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
            try:
                prepare(self._cluster.url(name))
            except BaseException:
                self.drop(self._cluster.url(name))
                raise
            self._templates.add(name)
        return name

    def create(self, template: str = "template1") -> str:
        """Copy a template into a fresh database and return its URL."""
        name = f"test_{os.getpid()}_{next(self._numbers)}"
        self._execute(
            # By files: what is small is copied faster so than page by page through the log.
            sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy").format(
                sql.Identifier(name), sql.Identifier(template)
            )
        )
        return self._cluster.url(name)

    def drop(self, url: str) -> None:
        """Drop the database, ending the connections that are still open to it."""
        name = urlsplit(url).path.removeprefix("/")
        self._execute(
            sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name))
        )

    def _execute(self, statement: sql.Composed) -> None:
        with psycopg.connect(self._cluster.url(), autocommit=True) as connection:
            connection.execute(statement)
