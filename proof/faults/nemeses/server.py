"""The server on trial: backends, crashes, restarts, locks, a horizon that stands still."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import psycopg

from proof.faults.harness import OWN
from proof.faults.jobs import LEASE
from proof.faults.nemeses.base import AtAPost, Nemesis
from support.processes import send

if TYPE_CHECKING:
    from proof.faults.harness import Bed

# In milliseconds.
_GONE_WITHIN = 1000
# The longest wait of our migration for a lock; and of another program's, past the leases.
_LOCK_TIMEOUTS = (2.0, 1.5 * LEASE)
_BACKENDS = """
SELECT a.pid FROM pg_stat_activity AS a
WHERE a.datname = current_database() AND a.backend_type = 'client backend'
    AND a.application_name <> %(own)s
"""
_TERMINATE = f"""
SELECT pg_terminate_backend(p, {_GONE_WITHIN}) FROM unnest(%(pids)s::integer[]) AS p
"""
_PINNED = """
SELECT count(*) FROM pg_stat_activity AS a WHERE a.pid = %(pid)s AND a.backend_xmin IS NOT NULL
"""
# Of them, those that wait behind a request that is itself not granted.
_BEHIND = """
SELECT count(*) FROM pg_locks AS l
WHERE NOT l.granted AND %(pid)s = ANY (pg_blocking_pids(l.pid)) AND EXISTS (
    SELECT FROM pg_locks AS m
    WHERE m.pid = %(pid)s AND m.mode = 'AccessExclusiveLock' AND NOT m.granted
)
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
            pids = [pid for (pid,) in bed.rows(_BACKENDS, own=OWN)]
            ended = bed.rows(_TERMINATE, pids=bed.rng.sample(pids, min(len(pids), 1)))
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
    _pid: int

    def strike(self, bed: Bed) -> float | None:
        try:
            self._connection = psycopg.connect(bed.url, connect_timeout=5)
            self._connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            self._connection.execute("SELECT count(*) FROM tenure.queue")
            self._pid = self._connection.info.backend_pid
        except psycopg.OperationalError:
            return None
        return bed.rng.uniform(5, 15)

    def relieve(self, bed: Bed) -> int:
        """A server that was away has let go of it."""
        pinned = 0
        with contextlib.suppress(psycopg.OperationalError):
            self._connection.execute("SELECT 1")
            [(pinned,)] = bed.rows(_PINNED, pid=self._pid)
        self._connection.close()
        return pinned


class Convoy(Nemesis):
    """A migration waits for its lock behind a long transaction, and everyone behind the migration,
    until its lock_timeout sends it away or the transaction ends."""

    name = "a migration behind a long transaction"
    _reader: psycopg.Connection[Any]
    _migration: int
    _behind: int

    def strike(self, bed: Bed) -> float | None:
        patience = bed.rng.choice(_LOCK_TIMEOUTS)
        self._behind = 0
        with ExitStack() as stack:
            try:
                self._reader = stack.enter_context(psycopg.connect(bed.url, connect_timeout=5))
                self._reader.execute("SELECT count(*) FROM tenure.job WHERE id = 0")
                migration = stack.enter_context(psycopg.connect(bed.url, connect_timeout=5))
                migration.execute(f"SET LOCAL lock_timeout = {int(patience * 1000)}".encode())
            except psycopg.OperationalError:
                return None
            stack.pop_all()
        self._migration = migration.info.backend_pid
        threading.Thread(target=self._migrate, args=[migration], daemon=True).start()
        return bed.rng.uniform(0.5, 1.1) * patience

    @staticmethod
    def _migrate(connection: psycopg.Connection[Any]) -> None:
        with contextlib.suppress(psycopg.Error), connection:
            connection.execute("LOCK TABLE tenure.job IN ACCESS EXCLUSIVE MODE")
            connection.rollback()

    def look(self, bed: Bed) -> bool:
        if not self._behind:
            [(self._behind,)] = bed.rows(_BEHIND, pid=self._migration)
        return False

    def relieve(self, bed: Bed) -> int:
        del bed
        self._reader.close()
        return int(self._behind > 0)


class KillLocked(AtAPost):
    """Another session keeps the rows of a worker's jobs locked; the worker's reports wait behind
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
        self.post.dismiss(signal.SIGKILL)
        for pid in family:
            send(pid, signal.SIGKILL)
        return 1.1 * LEASE

    def restore(self, bed: Bed) -> int:
        del bed
        self._connection.close()
        return 1
