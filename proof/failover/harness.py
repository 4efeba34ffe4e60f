"""What one part stands on: a database that is found by two addresses, workers, client processes,
a book and a history outside of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any, Self

import psycopg

from proof.crash import jobs
from proof.crash.fleet import Fleet
from proof.crash.history import History
from proof.failover import book, client
from support.binaries import ROOT
from support.processes import die_with_parent, wait_for
from support.store import install
from tenure import _wiring
from tenure._store.postgres.connections import beside

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from proof.crash.fleet import Shape

_DATABASE = "proof"
_UP_WITHIN = 60.0
_END_WITHIN = 120.0
_DRAIN_WITHIN = 300.0
_OPEN = "SELECT count(*) FROM tenure.job"


class Bed:
    """One part's processes. Leave it, and they have ended."""

    def __init__(self, url: str, directory: Path, bug: str | None) -> None:
        directory.mkdir(parents=True)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {_DATABASE}".encode())
        self.url = beside(url, _DATABASE)
        install(self.url)
        self.rows(jobs.LEDGER)
        self.history = History(directory / "history")
        self._directory = directory
        self._book = directory / "book"
        self._book.touch()
        self._bug = bug or ""
        self.fleets: list[Fleet] = []
        self.ended: list[str] = []
        self.clients: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.clients:
            process.kill()
            process.wait()
        for fleet in self.fleets:
            fleet.end()
        self.history.close()

    def rows(
        self, query: str, *, url: str | None = None, **parameters: Any
    ) -> list[tuple[Any, ...]]:
        """Return what a query answers at the writable server, once there is one, by a connection
        of its own."""
        give_up_at = time.monotonic() + _UP_WITHIN
        while True:
            try:
                with psycopg.connect(url or self.url, autocommit=True, connect_timeout=3) as known:
                    cursor = known.execute(query.encode(), parameters or None)
                    return cursor.fetchall() if cursor.description else []
            except psycopg.OperationalError:
                if time.monotonic() > give_up_at:
                    raise
                time.sleep(0.1)

    def hire(self, shape: Shape, *, url: str | None = None) -> Fleet:
        """Start workers and wait until they are active."""
        directory = self._directory / f"workers-{len(self.fleets) + 1}"
        directory.mkdir()
        environment = self._environment(url) | {"TENURE_RUN_DIR": str(directory / "run")}
        fleet = Fleet(shape, directory, environment)
        self.fleets.append(fleet)
        active = "SELECT count(*) FROM tenure.worker WHERE state = 'active'"
        before = self.rows(active, url=url)[0][0]
        fleet.start_all()
        wanted = before + shape.workers * shape.processes
        if not wait_for(lambda: bool(self.rows(active, url=url)[0][0] >= wanted), _UP_WITHIN):
            raise RuntimeError("the workers did not come up; see their logs")
        return fleet

    def call(self, name: str, *, lanes: int, deadline: float, url: str | None = None) -> None:
        """Start one client process."""
        with (self._directory / f"client-{name}.log").open("ab") as log:
            self.clients.append(
                subprocess.Popen(  # noqa: S603 - its own client
                    [
                        sys.executable,
                        "-m",
                        "proof.failover.client",
                        name,
                        str(lanes),
                        str(deadline),
                    ],
                    cwd=ROOT,
                    env=os.environ | self._environment(url),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                    preexec_fn=die_with_parent(signal.SIGKILL),  # noqa: PLW1509 - it takes no lock
                )
            )

    def served(self, lanes: int) -> bool:
        """Return whether this many lanes get an acknowledgment in time, from now on."""
        since = time.monotonic()
        while self.book().served(since) < lanes:
            if time.monotonic() > since + _UP_WITHIN:
                return False
            time.sleep(0.2)
        return True

    def hush(self) -> list[int]:
        """Let the clients see their last keys through; the exit codes."""
        for process in self.clients:
            process.send_signal(signal.SIGTERM)
        return [process.wait(_END_WITHIN) for process in self.clients]

    def book(self) -> book.Book:
        """What the clients have written so far."""
        return book.read(self._book)

    def ask_again(self, keys: Iterable[str]) -> None:
        """Enqueue these keys once more, as their callers would, and note the answers."""
        pen = book.Pen(str(self._book))
        engine = _wiring.engine(self.url)
        try:
            for key in keys:
                request, arguments = client.call(key)
                [answer] = engine.run(engine.store.jobs.enqueue([request.bind(*arguments).job]))
                pen.write(book.ACKNOWLEDGED, key, answer.id)
        finally:
            engine.close()

    def all_end(self, within: float = _DRAIN_WITHIN) -> bool:
        """Whether no live job is left in time."""
        return wait_for(lambda: self.rows(_OPEN) == [(0,)], within)

    def dismiss(self) -> None:
        """End the workers, so that the accounts stand still; who had ended before is noted."""
        self.ended += [
            worker.name for fleet in self.fleets for worker in fleet.workers if worker.gone
        ]
        for fleet in self.fleets:
            fleet.end()
        self.history.new()

    def _environment(self, url: str | None) -> dict[str, str]:
        return {
            "TENURE_DATABASE_URL": url or self.url,
            "PROOF_HISTORY": str(self.history.path),
            "PROOF_BOOK": str(self._book),
            "PROOF_BUG": self._bug,
        }
