"""What each verb costs the database, per job, against the bare engine in the same run."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING, Any

from bench.measure import Meter, Spread
from bench.subjects import QUEUE
from tenure._model.job import NewJob
from tenure._rules import payload

if TYPE_CHECKING:
    from collections.abc import Callable

    from psycopg import Connection

    from bench.report import Report
    from bench.server import Server
    from bench.subjects import Subject

ROUNDS = 9
VERBS = ("enqueue", "claim", "renew", "settle")
JOBS = {1: 300, 10: 2_000, 100: 4_000, 500: 10_000}
PAYLOADS = {"0": "{}"} | {f"{size} KiB": f'{{"x":"{"x" * (size * 1024 - 8)}"}}' for size in (1, 64)}


def run(server: Server, report: Report) -> None:
    url = server.database()
    subjects: list[Subject] = [server.bare(url), server.tenure(url)]
    admin = server.admin(url)
    report.title("Processor time of the database per job, µs: median of alternating rounds (range)")
    for batch, jobs in JOBS.items():
        count = jobs // 2 if report.short else jobs
        _compare(report, admin, subjects, batch, count, "0", bar=1.25 if batch == 100 else None)
    for size, count in (("1 KiB", 3_000), ("64 KiB", 1_000))[: 1 if report.short else 2]:
        _compare(report, admin, subjects, 100, count, size, bar=None)
    _against_copy(report, admin, subjects)
    for subject in subjects:
        subject.connection.close()
    admin.close()
    server.drop(url)


def _compare(
    report: Report,
    admin: Any,
    subjects: list[Subject],
    batch: int,
    jobs: int,
    size: str,
    *,
    bar: float | None,
) -> None:
    figures: dict[str, dict[str, list[float]]] = {s.name: {v: [] for v in VERBS} for s in subjects}
    ratios = []
    for _ in range(3 if report.short else ROUNDS):
        both = {}
        for subject in subjects:
            meter = _round(subject, batch, jobs, PAYLOADS[size])
            for verb in VERBS:
                figures[subject.name][verb].append(meter.cpu[verb] / jobs * 1e6)
            both[subject.name] = meter.cpu["claim"] + meter.cpu["settle"]
            admin.execute("VACUUM bare.job")
            admin.execute("VACUUM tenure.job")
        ratios.append(both["tenure"] / both["bare"])
    print(f"batch {batch}, payload {size}")
    for name, verbs in figures.items():
        text = "  ".join(f"{verb} {Spread.of(values)}" for verb, values in verbs.items())
        medians = {verb: statistics.median(values) for verb, values in verbs.items()}
        report.line(f"cost:{batch}:{size}:{name}", f"  {name:7} {text}", **medians)
    ratio = statistics.median(ratios)
    if bar is None:
        report.line(f"ratio:{batch}:{size}", f"  claim + settle: {ratio:.2f} × bare", ratio=ratio)
    else:
        report.bar(f"ratio:{batch}:{size}", "claim + settle against bare", ratio, bar, " ×")


def _round(subject: Subject, batch: int, jobs: int, payload: str) -> Meter:
    meter = Meter()
    with meter.time(subject.connection, "enqueue"):
        for _ in range(jobs // batch):
            subject.enqueue(batch, payload)
    subject.woken()
    taken = []
    with meter.time(subject.connection, "claim"):
        while claims := subject.claim(batch):
            taken.append(claims)
    with meter.time(subject.connection, "renew"):
        for claims in taken:
            subject.renew(claims)
    with meter.time(subject.connection, "settle"):
        for claims in taken:
            subject.settle(claims)
    got = sum(map(len, taken))
    if got != jobs:
        raise AssertionError(f"{subject.name} claimed {got} of {jobs} jobs")
    return meter


def _against_copy(report: Report, admin: Any, subjects: list[Subject]) -> None:
    """Arrays of 1,000 against COPY of the same rows, and against COPY as the store could use it."""
    report.title("Enqueue by arrays of 1,000 against COPY, jobs/s (wall)")
    bare, tenure = subjects
    rates: dict[str, list[float]] = {"bare COPY": [], "arrays": [], "COPY and INSERT": []}
    ways: dict[str, Callable[[], None]] = {
        "bare COPY": lambda: _copy(bare.connection),
        "arrays": lambda: tenure.enqueue(1_000, "{}"),
        "COPY and INSERT": lambda: _copy_and_insert(tenure.connection),
    }
    for _ in range(5):
        for name, way in ways.items():
            began = time.perf_counter()
            for _ in range(10):
                way()
            rates[name].append(10_000 / (time.perf_counter() - began))
        admin.execute("TRUNCATE bare.job")
        admin.execute("TRUNCATE tenure.job")
    medians = {name: statistics.median(values) for name, values in rates.items()}
    for name, rate in medians.items():
        share = rate / medians["bare COPY"]
        report.line(
            f"copy:{name}", f"  {name:16} {rate:>9,.0f}  {share:.2f}", rate=rate, share=share
        )


def _copy(connection: Connection[Any]) -> None:
    columns = "COPY bare.job (queue, task, args, priority, created_at, run_at) FROM STDIN"
    with connection.cursor() as cursor, cursor.copy(columns) as copy:
        for _ in range(1_000):
            copy.write_row((QUEUE, "noop", "{}", 5, "now", "now"))


def _copy_and_insert(connection: Connection[Any]) -> None:
    """What a COPY path would do: check as enqueue does, COPY aside, INSERT with the defaults."""
    with connection.transaction(), connection.cursor() as cursor:
        cursor.execute(
            "CREATE TEMP TABLE aside (queue text, task text, args jsonb, priority smallint) "
            "ON COMMIT DROP"
        )
        with cursor.copy("COPY aside FROM STDIN") as copy:
            for _ in range(1_000):
                job = NewJob("noop", QUEUE, {})
                payload.check(job)
                copy.write_row((job.queue, job.task, payload.encode(job.args), job.priority))
        cursor.execute(
            "INSERT INTO tenure.job (queue, task, args, priority, created_at, run_at, "
            "max_attempts, max_losses) SELECT a.queue, a.task, a.args, a.priority, "
            "clock_timestamp(), clock_timestamp(), 3, 3 FROM aside AS a RETURNING id"
        )
        cursor.fetchall()
