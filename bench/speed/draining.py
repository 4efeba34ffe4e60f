"""How fast no-op jobs are worked off: the bare loop, Tenure and its peers, in alternation."""

from __future__ import annotations

import statistics
from contextlib import ExitStack
from dataclasses import asdict
from typing import TYPE_CHECKING

import psycopg

from bench.measure import Spread
from bench.speed import field
from bench.speed.contender import ContenderError, Keeping
from bench.speed.drain import drain, size
from bench.speed.statements import counted

if TYPE_CHECKING:
    from bench.report import Report
    from bench.server import Server
    from bench.speed.drain import Round
    from bench.speed.field import Entry

ROUNDS = 3
BARE, PGQUEUER, PGBOSS = 0.7, 1.5, 1.0
SECOND_CHILD, THREADS, PROCESSES = 1.5, 5_000, 1_000


def run(server: Server, report: Report) -> None:
    report.title(f"No-op jobs worked off, jobs/s: median of {ROUNDS} alternating rounds (range)")
    report.forget("drain:", "bar:drain:", "about:", "absent:")
    peers, absent = field.peers()
    entries = [*field.ours(), *peers]
    request = counted([*field.bares(), *entries], report)
    batch = round(request["Tenure"]["claimed"])
    entries = [*field.bares(sorted({*field.BATCHES, batch})), *entries]
    with ExitStack() as stack:
        redis = None
        if any(entry.contender.redis for entry in entries):
            redis = stack.enter_context(Keeping())
        rounds = measure(server, report, entries, redis, ROUNDS)
        _about(server, report, [entry for entry in entries if entry.name in rounds], redis)
    for entry in entries:
        if entry.name in rounds:
            show(report, entry, rounds[entry.name], request.get(entry.name, {}))
    for name, why in absent.items():
        report.line(f"absent:{name}", f"  {name}: not measured: {why}", name=name, why=why)
    _judge(report, rounds, f"bare loop, batches of {batch}")


def measure(
    server: Server, report: Report, entries: list[Entry], redis: Keeping | None, rounds: int
) -> dict[str, list[Round]]:
    """Rounds of each by name. One that fails is reported, and takes no further part."""
    jobs: dict[str, int] = {}
    found: dict[str, list[Round]] = {}
    for turn in range(rounds + 1):
        for entry in entries:
            try:
                if turn == 0:
                    jobs[entry.name] = size(entry, server, redis)
                elif entry.name in jobs:
                    once = drain(entry, server, redis, jobs[entry.name])
                    found.setdefault(entry.name, []).append(once)
            except (ContenderError, AssertionError) as error:
                jobs.pop(entry.name, None)
                report.line(
                    f"absent:{entry.name}",
                    f"  {entry.name}: failed: {error}",
                    name=entry.name,
                    why=str(error),
                )
    return found


def show(report: Report, entry: Entry, rounds: list[Round], requested: dict[str, float]) -> None:
    spreads = {
        name: Spread.of([asdict(once)[name] for once in rounds]) for name in asdict(rounds[0])
    }
    rate, database, worker = (spreads[n] for n in ("rate", "database_us", "worker_us"))
    report.line(
        f"drain:{entry.name}",
        f"  {entry.name:36} {rate.median:>8,.0f} ({rate.low:,.0f}–{rate.high:,.0f})  µs: "
        f"database {database}  worker {worker}",
        name=entry.name,
        children=entry.children,
        **{name: asdict(spread) for name, spread in spreads.items()},
        **requested,
    )


def paired(one: list[Round], other: list[Round]) -> float:
    """The median of the ratios of rates, round by round."""
    return statistics.median(a.rate / b.rate for a, b in zip(one, other, strict=False))


def _about(server: Server, report: Report, entries: list[Entry], redis: Keeping | None) -> None:
    """What each says of itself, once for each program; and the server's version."""
    for contender in {tuple(e.contender.command): e.contender for e in entries}.values():
        with contender.place(server, redis) as place:
            reported = contender.call(place, "about")
        report.figures[f"about:{reported['name']}"] = reported
    with psycopg.connect(server.cluster.url()) as connection:
        row = connection.execute("SHOW server_version").fetchone()
    report.figures["postgresql"] = row[0] if row else "?"


def _judge(report: Report, rounds: dict[str, list[Round]], bare: str) -> None:
    ours = rounds["Tenure"]
    against = [(bare, BARE, "the bare loop at its batch size"), ("PgQueuer", PGQUEUER, "PgQueuer")]
    for name, bar, what in [*against, ("pg-boss", PGBOSS, "pg-boss")]:
        if name in rounds:
            ratio = paired(ours, rounds[name])
            report.at_least(f"drain:{name}", f"one child against {what}", ratio, bar, " ×")
    both = paired(rounds["Tenure, 2 children"], ours)
    report.at_least("drain:2", "two children against one", both, SECOND_CHILD, " ×")
    for name, bar in (("thread", THREADS), ("process", PROCESSES)):
        rate = statistics.median(r.rate for r in rounds[f"Tenure, {name} handlers"])
        report.at_least(f"drain:{name}", f"{name} handlers", rate, bar, " jobs/s")
