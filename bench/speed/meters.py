"""What a run costs: processor time of a server and of a worker, WAL and commits.

Processor time of a family is the clock of each living process, to the nanosecond and over all of
its threads, with what the kernel has added up of those that ended and were waited for. So nothing
need be sampled, and a backend that came and went meanwhile is counted.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import psycopg

if TYPE_CHECKING:
    from bench.speed.contender import Place

_TICK = os.sysconf("SC_CLK_TCK")
_CPUCLOCK_SCHED = 2


@dataclass(frozen=True)
class Reading:
    """Seconds of processor time so far, and bytes of WAL; subtract an earlier one."""

    database: float
    worker: float
    wal: int

    def __sub__(self, other: Reading) -> Reading:
        return Reading(
            self.database - other.database, self.worker - other.worker, self.wal - other.wal
        )

    def per(self, jobs: int) -> dict[str, float]:
        """By job: microseconds of both, and bytes."""
        return {
            "database_us": self.database / jobs * 1e6,
            "worker_us": self.worker / jobs * 1e6,
            "wal_bytes": self.wal / jobs,
        }


def read(place: Place, worker: int | None = None) -> Reading:
    """What the server of a place, and the family of a worker, have used so far."""
    wal = 0
    if place.admin:
        with psycopg.connect(place.admin, autocommit=True) as connection:
            row = connection.execute("SELECT pg_current_wal_lsn() - '0/0'::pg_lsn").fetchone()
            wal = int(row[0]) if row else 0
    return Reading(family_seconds(place.server), family_seconds(worker) if worker else 0.0, wal)


def commits(place: Place) -> int:
    """Commits in the database of a place; true once the backends that made them have ended, or
    have been idle for some seconds."""
    if not place.admin:
        return 0
    name = urlsplit(place.url).path.removeprefix("/")
    with psycopg.connect(place.admin, autocommit=True) as connection:
        row = connection.execute(
            "SELECT xact_commit FROM pg_stat_database WHERE datname = %s", [name]
        ).fetchone()
    return int(row[0]) if row else 0


def family_seconds(root: int) -> float:
    """Processor time of a process, of all below it, and of those of them that have ended."""
    return sum(_seconds(pid) for pid in family(root))


def family(root: int) -> list[int]:
    """A process and all below it."""
    below: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (fields := _fields(int(entry.name))):
            below.setdefault(int(fields[1]), []).append(int(entry.name))
    found = [root]
    for pid in found:
        found += below.get(pid, [])
    return found


def _seconds(pid: int) -> float:
    fields = _fields(pid)
    if fields is None:
        return 0.0
    ended = (int(fields[13]) + int(fields[14])) / _TICK
    try:
        return time.clock_gettime((~pid << 3) | _CPUCLOCK_SCHED) + ended
    except OSError:  # it has ended, and is yet to be waited for
        return (int(fields[11]) + int(fields[12])) / _TICK + ended


def _fields(pid: int) -> list[str] | None:
    """What /proc/PID/stat says behind the name, or None when the process is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
