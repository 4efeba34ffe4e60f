"""A server whose settings can be changed by SQL, and a bed: one database to break and to fix."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from support.cluster import Cluster
from support.databases import Databases
from support.processes import die_with_parent, wait_for
from support.store import install
from tenure.admin import connect, examine, roles
from tenure.cli.commands import run as cli

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from psycopg import Connection

    from tenure.admin import Admin
    from tenure.types import Finding, FindingCode

# An app that knows the one task, and a queue beside the default one.
APP = """
from tenure import Tenure

app = Tenure(redis="")


@app.task(name="work", queue="mail")
def work() -> None:
    pass
"""
# On the command line they could not be changed while it runs.
CHANGED = ("autovacuum", "fsync", "full_page_writes", "synchronous_commit")


class Bed:
    """One database, broken by a test and fixed by the doctor's remedy."""

    def __init__(self, cluster: Cluster, url: str, directory: Path, open_: contextlib.ExitStack):
        self.cluster = cluster
        self.url = url
        self.directory = directory
        self._open = open_
        (directory / "doctored.py").write_text(APP)

    def sql(self, *statements: str) -> None:
        """Do this as a superuser, each by itself."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.encode())

    def connection(self) -> Connection[Any]:
        """One more, that stays open."""
        return self._open.enter_context(contextlib.closing(psycopg.connect(self.url)))

    def admin(self) -> Admin:
        """The operator's verbs."""
        return self._open.enter_context(connect(self.url))

    def as_role(self, role: str) -> str:
        """The database's URL for one of our roles, which are made if they are not there."""
        self.sql(roles())
        return self.url.replace("postgres@", f"{role}@")

    def found(self, fault: FindingCode, url: str | None = None) -> list[Finding]:
        """The findings of this kind."""
        return [each for each in examine(url or self.url) if each.fault is fault]

    def until(self, fault: FindingCode, url: str | None) -> Sequence[Finding]:
        """All findings, once this kind is among them."""
        found: Sequence[Finding] = ()

        def looked() -> bool:
            nonlocal found
            found = examine(url or self.url)
            return any(each.fault is fault for each in found)

        assert wait_for(looked, 5), found
        return found

    def do(self, todo: str) -> None:
        """Exactly what it says, where it is a command or SQL."""
        kind, _, what = todo.partition(": ")
        if kind == "in SQL":
            # As psql does: what is between dollar quotes belongs to one statement.
            self.sql(*re.findall(r"(?:\$\$.*?\$\$|(?!; ).)+", what, re.DOTALL))
            return
        assert kind == "run", todo
        for command in what.split(" && "):
            self.run(command.replace("module:app", "doctored:app"))

    def run(self, command: str) -> None:
        """A command; one that keeps running is stopped at the end."""
        name, *words = command.split()
        assert name == "tenure"
        if words[0] not in {"worker", "scheduler"}:
            assert cli([*words, "--database-url", self.url]) == 0
            return
        process = subprocess.Popen(
            [sys.executable, "-m", "tenure", *words],
            cwd=self.directory,
            env={**os.environ, "TENURE_DATABASE_URL": self.url, "TENURE_RUN_DIR": "run"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=die_with_parent(signal.SIGKILL),  # noqa: PLW1509 - it takes no lock
        )
        self._open.callback(process.wait)
        self._open.callback(process.kill)


@pytest.fixture(scope="module")
def server(pytestconfig: pytest.Config) -> Iterator[Cluster]:
    """A server that is sound, and can be spoilt."""
    settings = {
        "wal_level": "logical",
        "max_prepared_transactions": "5",
        "autovacuum_naptime": "1h",  # It must not fix what a test broke.
    }
    cluster = Cluster(pytestconfig.getoption("--postgres"), settings, in_memory=True)
    for name in CHANGED:
        del cluster.settings[name]
    with cluster:
        yield cluster


@pytest.fixture(scope="module")
def own(server: Cluster) -> Databases:
    return Databases(server)


@pytest.fixture
def bed(server: Cluster, own: Databases, tmp_path: Path) -> Iterator[Bed]:
    """A fresh database on that server."""
    url = own.create(own.template("tenure", install))
    with contextlib.ExitStack() as open_:
        yield Bed(server, url, tmp_path, open_)
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute("ALTER SYSTEM RESET ALL")
        connection.execute("SELECT pg_reload_conf()")
    own.drop(url)
