"""The server on trial: backends, crashes, restarts, locks, a horizon that stands still."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from typing import TYPE_CHECKING, Any

import psycopg

from proof.faults.jobs import LEASE
from proof.faults.nemeses.base import AtAPost, Nemesis
from support.processes import send

if TYPE_CHECKING:
    from proof.faults.bed import Bed

_BACKENDS = """
SELECT a.pid FROM pg_stat_activity AS a
WHERE a.datname = current_database() AND a.pid <> pg_backend_pid()
"""
_LOCK = """
SELECT j.id FROM tenure.job AS j
JOIN tenure.worker AS w ON w.id = j.claimed_by
WHERE j.state = 'running' AND w.pid = ANY (%s)
FOR UPDATE OF j SKIP LOCKED
"""


class TerminateBackends(Nemesis):
    """Some connections of workers and clients, idle or in the middle of a statement."""

    name = "backend terminated"
    light = True
    _count = 0

    def strike(self, bed: Bed) -> float | None:
        try:
            pids = [pid for (pid,) in bed.rows(_BACKENDS)]
            chosen = bed.rng.sample(pids, min(len(pids), 1))
            ended = bed.rows(
                "SELECT pg_terminate_backend(p) FROM unnest(%(pids)s::integer[]) AS p", pids=chosen
            )
        except psycopg.OperationalError:
            return None
        self._count = sum(done for (done,) in ended)
        return 0.0

    def relieve(self, bed: Bed) -> int:
        del bed
        return self._count


class KillServer(Nemesis):
    """Every process of the server; it recovers from its log."""

    name = "kill -9 of the server"

    def strike(self, bed: Bed) -> float | None:
        bed.cluster.kill()
        return bed.rng.uniform(0, 0.5 * LEASE)

    def relieve(self, bed: Bed) -> int:
        bed.cluster.start()
        return 1


class RestartServer(Nemesis):
    """A shutdown in an orderly way, and a start."""

    name = "restart of the server"

    def strike(self, bed: Bed) -> float | None:
        bed.cluster.restart()
        return 0.0


class PinHorizon(Nemesis):
    """A transaction that stays open: nothing that was deleted after it began can be cleaned up."""

    name = "pinned horizon"
    _connection: psycopg.Connection[Any]

    def strike(self, bed: Bed) -> float | None:
        try:
            self._connection = psycopg.connect(bed.url, connect_timeout=5)
            self._connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            self._connection.execute("SELECT count(*) FROM tenure.queue")
        except psycopg.OperationalError:
            return None
        return bed.rng.uniform(5, 15)

    def relieve(self, bed: Bed) -> int:
        del bed
        self._connection.close()
        return 1


class Convoy(Nemesis):
    """A migration waits for its lock behind a long transaction, and everyone behind the migration,
    until its lock_timeout sends it away."""

    name = "a migration behind a long transaction"
    _reader: psycopg.Connection[Any]

    def strike(self, bed: Bed) -> float | None:
        try:
            self._reader = psycopg.connect(bed.url, connect_timeout=5)
            self._reader.execute("SELECT count(*) FROM tenure.job WHERE id = 0")
        except psycopg.OperationalError:
            return None
        threading.Thread(target=self._migrate, args=[bed.url], daemon=True).start()
        return 2 * _LOCK_TIMEOUT

    @staticmethod
    def _migrate(url: str) -> None:
        with contextlib.suppress(psycopg.Error), psycopg.connect(url, connect_timeout=5) as other:
            other.execute(f"SET LOCAL lock_timeout = {int(_LOCK_TIMEOUT * 1000)}".encode())
            other.execute("ALTER TABLE tenure.job SET (fillfactor = 90)")
            other.rollback()

    def relieve(self, bed: Bed) -> int:
        del bed
        self._reader.close()
        return 1


class KillLocked(AtAPost):
    """Somebody keeps the rows of a worker's jobs locked; what the worker still says waits behind
    the lock, the worker is killed, and the lock is held past the ends of its leases."""

    name = "kill -9 of a worker whose rows are locked"
    _connection: psycopg.Connection[Any]

    def harm(self, bed: Bed) -> float | None:
        family = self.post.family()
        try:
            self._connection = psycopg.connect(bed.url, connect_timeout=5)
            locked = self._connection.execute(_LOCK, [family]).fetchall()
        except psycopg.OperationalError:
            return None
        if not locked:
            self._connection.close()
            return None
        # Until a renewal was due.
        time.sleep(0.4 * LEASE)
        for pid in family:
            send(pid, signal.SIGKILL)
        return 1.1 * LEASE

    def mend(self, bed: Bed) -> int:
        del bed
        self._connection.close()
        return 1


# What a migration of ours waits for a lock at most, scaled as the lease is.
_LOCK_TIMEOUT = 0.2
