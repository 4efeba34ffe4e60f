"""What each verb costs the database, per job, against the bare engine in the same run."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING, Any

from bench.measure import Meter, Spread
from bench.subjects import QUEUE

if TYPE_CHECKING:
    from bench.report import Report
    from bench.server import Server
    from bench.subjects import Subject

ROUNDS = 7
VERBS = ("enqueue", "claim", "renew", "settle")
JOBS = {1: 300, 10: 2_000, 100: 5_000, 500: 10_000}
PAYLOADS = {"0": "{}", "1 KiB": '"' + "x" * 1022 + '"', "64 KiB": '"' + "x" * 65_534 + '"'}


def run(server: Server, report: Report) -> None:
    url = server.database()
    subjects: list[Subject] = [server.bare(url), server.tenure(url)]
    admin = server.admin(url)
    report.title("Processor time of the database per job, µs: median of alternating rounds (range)")
    for batch, jobs in JOBS.items():
        count = jobs // 2 if report.short else jobs
        _compare(report, admin, subjects, batch, count, "0", bar=1.25 if batch == 100 else None)
    for payload in ("1 KiB", "64 KiB"):
        count = 1_000 if payload == "64 KiB" else 3_000
        _compare(report, admin, subjects, 100, count, payload, bar=None)
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
    payload: str,
    *,
    bar: float | None,
) -> None:
    figures: dict[str, dict[str, list[float]]] = {s.name: {v: [] for v in VERBS} for s in subjects}
    ratios = []
    for _ in range(3 if report.short else ROUNDS):
        both = {}
        for subject in subjects:
            meter = _round(subject, batch, jobs, PAYLOADS[payload])
            for verb in VERBS:
                figures[subject.name][verb].append(meter.cpu[verb] / jobs * 1e6)
            both[subject.name] = meter.cpu["claim"] + meter.cpu["settle"]
            admin.execute("VACUUM bare.job")
            admin.execute("VACUUM tenure.job")
        ratios.append(both["tenure"] / both["bare"])
    print(f"batch {batch}, payload {payload}")
    for name, verbs in figures.items():
        text = "  ".join(f"{verb} {Spread.of(values)}" for verb, values in verbs.items())
        medians = {verb: statistics.median(values) for verb, values in verbs.items()}
        report.line(f"cost:{batch}:{payload}:{name}", f"  {name:7} {text}", **medians)
    ratio = statistics.median(ratios)
    if bar is None:
        report.line(
            f"ratio:{batch}:{payload}", f"  claim + settle: {ratio:.2f} × bare", ratio=ratio
        )
    else:
        report.bar(f"ratio:{batch}:{payload}", "claim + settle against bare", ratio, bar, " ×")


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
    """Arrays of 1,000 against COPY of the same rows: is a COPY path worth having?"""
    report.title("Enqueue by arrays of 1,000 against bare COPY, jobs/s (wall)")
    bare, tenure = subjects
    rates: dict[str, list[float]] = {"copy": [], "arrays": []}
    columns = "COPY bare.job (queue, task, args, priority, created_at, run_at) FROM STDIN"
    for _ in range(5):
        began = time.perf_counter()
        for _ in range(10):
            with bare.connection.cursor() as cursor, cursor.copy(columns) as copy:
                for _ in range(1_000):
                    copy.write_row((QUEUE, "noop", "{}", 5, "now", "now"))
        rates["copy"].append(10_000 / (time.perf_counter() - began))
        began = time.perf_counter()
        for _ in range(10):
            tenure.enqueue(1_000, "{}")
        rates["arrays"].append(10_000 / (time.perf_counter() - began))
        admin.execute("TRUNCATE bare.job")
        admin.execute("TRUNCATE tenure.job")
    medians = {name: statistics.median(values) for name, values in rates.items()}
    share = medians["arrays"] / medians["copy"]
    report.line(
        "copy",
        f"  arrays {medians['arrays']:,.0f}, COPY {medians['copy']:,.0f}: "
        f"{share:.2f} of COPY (a COPY path is due below 0.7)",
        **medians,
        share=share,
    )
