"""Ticks at 500 a second on two schedulers: from the time each is due to its job being claimable.

Claimable is when its firing's commit is seen by others. A firing notifies workers in its own
transaction, and what is notified arrives in the order of the commits, after each: so the arrival
at a listener is taken, matched to its commit by that order (`pg_xact_commit_timestamp`). The
commit's own timestamp, which is taken before the log is on disk, is told beside it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg

from bench.measure import backend_seconds
from bench.witness import witness
from bench.workers import until
from support.processes import children, die_with_parent
from tenure._model.job import NewJob
from tenure._model.schedule import NewSchedule, Timing
from tenure._store.postgres.connections import connect
from tenure._store.postgres.sessions import Session
from tenure._store.postgres.store import PostgresStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bench.report import Report
    from bench.server import Server
    from bench.witness import Stalls

SETTINGS = {"track_commit_timestamp": "on", "track_wal_io_timing": "on"}
RATE = 500
SCHEDULERS = 2
QUEUE = "ticks"
P99, WORST = 250, 1000
_HERTZ = os.sysconf("SC_CLK_TCK")
_COMMITS = """
SELECT extract(epoch FROM pg_xact_commit_timestamp(xmin))::float8 AS at,
    array_agg(extract(epoch FROM (meta ->> 'tick_at')::timestamptz)::float8)
FROM tenure.job GROUP BY xmin, pg_xact_commit_timestamp(xmin) ORDER BY 1
"""
_LEFT = "SELECT count(*) FROM tenure.schedule WHERE next_at < %s"


def run(server: Server, report: Report) -> None:
    seconds = 5 if report.short else 60
    _shape(server, report, f"{RATE} schedules of every second", seconds, _herd)
    _shape(
        server,
        report,
        f"{RATE * seconds:,} schedules of one tick each",
        seconds,
        _spread,
        writing=True,
    )


def _herd(start: datetime, seconds: int) -> list[NewSchedule]:
    """All are due at each whole second."""
    del start, seconds
    return [_schedule(n, Timing(every=timedelta(seconds=1))) for n in range(RATE)]


def _spread(start: datetime, seconds: int) -> list[NewSchedule]:
    """One is due every two milliseconds."""
    return [
        _schedule(n, Timing(at=start + timedelta(seconds=n / RATE))) for n in range(RATE * seconds)
    ]


def _schedule(number: int, timing: Timing) -> NewSchedule:
    return NewSchedule(name=f"s{number:05d}", timing=timing, job=NewJob("noop", QUEUE))


def _shape(
    server: Server,
    report: Report,
    what: str,
    seconds: int,
    schedules: Callable[[datetime, int], list[NewSchedule]],
    *,
    writing: bool = False,
) -> None:
    report.title(f"{what} for {seconds} s, on {SCHEDULERS} schedulers")
    url = server.database()
    # Writing 30,000 definitions takes a while, and all must be there before the first is due.
    lead = timedelta(seconds=5 + writing * RATE * seconds // 1000)
    start = datetime.now(UTC).replace(microsecond=0) + lead
    end = start + timedelta(seconds=seconds)
    with connect(url) as connection:
        Session(connection).run(
            PostgresStore().schedules.declare("bench", (1,), schedules(start, seconds))
        )
        connection.execute("ANALYZE")
    with witness() as stalls, _listening(url) as heard, _schedulers(url) as processes:
        early = (start - datetime.now(UTC)).total_seconds()
        assert early > 1, f"the definitions took {-early:.0f} s too long"
        time.sleep(early - 0.5)
        shares = Shares(server.cluster.pid, processes)
        time.sleep(1 + seconds)
        taken = shares.taken()
        with server.admin(url) as admin:
            until(lambda: admin.execute(_LEFT, [end]).fetchone() == (0,), 60)
    with server.admin(url) as admin:
        commits = admin.execute(_COMMITS.encode()).fetchall()
        [(syncs, sync_ms)] = admin.execute(
            "SELECT wal_sync, wal_sync_time FROM pg_stat_wal"
        ).fetchall()
    server.drop(url)
    _tell(report, what, commits, heard, (start.timestamp(), end.timestamp()), taken, stalls)
    sync = sync_ms / max(syncs, 1)
    report.line(f"ticks:{what}:sync", f"  log to disk: {sync:.2f} ms on average", sync=sync)


def _tell(
    report: Report,
    what: str,
    commits: list[tuple[Any, ...]],
    heard: list[float],
    window: tuple[float, float],
    taken: Taken,
    stalls: Stalls,
) -> None:
    assert len(commits) == len(heard), f"{len(commits)} commits, {len(heard)} heard of"
    seen, committed, calm = [], [], []
    for (at, ticks), arrival in zip(commits, heard, strict=True):
        assert arrival >= at, "heard before it was committed"
        due = [tick for tick in ticks if window[0] <= tick < window[1]]
        seen += [(arrival - tick) * 1e3 for tick in due]
        committed += [(at - tick) * 1e3 for tick in due]
        calm += [(arrival - tick) * 1e3 for tick in due if not stalls.during(tick, arrival)]
    wanted = round(RATE * (window[1] - window[0]))
    seen.sort()
    committed.sort()
    p50, p99, worst = seen[len(seen) // 2], seen[int(len(seen) * 0.99)], seen[-1]
    report.line(
        f"ticks:{what}",
        f"  {len(seen):,} ticks in {len(commits):,} commits, p50 {p50:.1f} ms; by the commit's own "
        f"time p50 {committed[len(seen) // 2]:.1f} ms, p99 {committed[int(len(seen) * 0.99)]:.1f} "
        f"ms, max {committed[-1]:.1f} ms",
        ticks=len(seen),
        commits=len(commits),
        p50=p50,
        p99=p99,
        worst=worst,
        committed_p99=committed[int(len(seen) * 0.99)],
    )
    report.line(
        f"ticks:{what}:shares",
        f"  of one core: database {taken.database:.0%}, each scheduler "
        f"{', '.join(f'{share:.0%}' for share in taken.schedulers)}",
        database=taken.database,
        schedulers=taken.schedulers,
    )
    calm.sort()
    report.line(
        f"ticks:{what}:calm",
        f"  the machine kept a process that only sleeps waiting {len(stalls.spans)} times, at most "
        f"{stalls.worst * 1e3:.0f} ms; of {len(calm):,} ticks beside that: p99 "
        f"{calm[int(len(calm) * 0.99)]:.1f} ms, max {calm[-1]:.1f} ms",
        stalls=len(stalls.spans),
        longest_stall=stalls.worst,
        calm=len(calm),
        calm_p99=calm[int(len(calm) * 0.99)],
        calm_worst=calm[-1],
    )
    report.bar(f"ticks:{what}:lost", "ticks too many or too few", abs(len(seen) - wanted), 0)
    report.bar(f"ticks:{what}:p99", "p99 from the tick to its job being claimable", p99, P99, " ms")
    report.bar(f"ticks:{what}:worst", "the latest of all", worst, WORST, " ms")


@contextmanager
def _listening(url: str) -> Iterator[list[float]]:
    """When each firing was heard of, in order, while the block lasts and for a second after."""
    heard: list[float] = []
    stop = threading.Event()
    connection = psycopg.connect(url, autocommit=True)
    connection.execute(f"LISTEN {PostgresStore().jobs.channel}".encode())

    def listen() -> None:
        while not stop.is_set():
            notes = connection.notifies(timeout=1)
            heard.extend(time.time() for note in notes if note.payload == QUEUE)

    thread = threading.Thread(target=listen)
    thread.start()
    try:
        yield heard
    finally:
        stop.set()
        thread.join()
        connection.close()


@contextmanager
def _schedulers(url: str) -> Iterator[list[int]]:
    with ExitStack() as stack:
        processes = [
            stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-m", "tenure", "scheduler", "bench.ticks:app"],
                    env=os.environ | {"TENURE_DATABASE_URL": url},
                    stderr=subprocess.DEVNULL,
                    preexec_fn=die_with_parent(),  # noqa: PLW1509 - it takes no lock
                )
            )
            for _ in range(SCHEDULERS)
        ]
        try:
            yield [process.pid for process in processes]
        finally:
            for process in processes:
                process.terminate()


@dataclass(frozen=True)
class Taken:
    """Processor time as shares of one core."""

    database: float
    schedulers: list[float]


class Shares:
    """Processor time of the whole server and of each scheduler from now on."""

    def __init__(self, postmaster: int, schedulers: list[int]) -> None:
        self._postmaster = postmaster
        self._schedulers = schedulers
        self._before = self._now()
        self._began = time.monotonic()

    def taken(self) -> Taken:
        database, schedulers = self._now()
        seconds = time.monotonic() - self._began
        return Taken(
            (database - self._before[0]) / seconds,
            [
                (now - before) / seconds
                for now, before in zip(schedulers, self._before[1], strict=True)
            ],
        )

    def _now(self) -> tuple[float, list[float]]:
        server = sum(backend_seconds(pid) for pid in children(self._postmaster))
        server += backend_seconds(self._postmaster) + sum(_times(self._postmaster)[2:4])
        return server, [sum(_times(pid)[:2]) for pid in self._schedulers]


def _times(pid: int) -> list[float]:
    """User and system time of a process, and of its children that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return [int(field) / _HERTZ for field in fields[11:15]]
