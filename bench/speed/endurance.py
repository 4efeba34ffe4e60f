"""Endurance: ten minutes of jobs on two workers, of which one is
killed every minute, with a transaction held open in the middle. How long each waited, whether any
was lost, and whether memory grows."""

from __future__ import annotations

import statistics
import time
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import psycopg

from bench.speed.chart import ENDURANCE
from bench.speed.contender import tenure
from bench.speed.counting import STAMP, now
from bench.speed.history import History, Loss
from bench.speed.meters import family_seconds
from bench.speed.pair import pair
from bench.speed.producing import SENT, produce, produced, sent
from bench.speed.timeline import Timeline, duration
from bench.witness import witness
from bench.workers import until
from support.processes import wait_for

if TYPE_CHECKING:
    from bench.report import Report
    from bench.server import Server
    from bench.speed.contender import Place
    from bench.witness import Stalls

LONG = 1.0
WINDOW, LONGEST, RETURN, GROWTH = 10.0, 2000.0, 1.3, 10.0
_LOST = """
SELECT job_id, extract(epoch FROM started_at)::float8, extract(epoch FROM ended_at)::float8
FROM tenure.attempt WHERE outcome = 'lost'
"""
_WORKERS = "SELECT count(*) FROM tenure.worker"
_ACCEPTED = """
SELECT count(*), count(DISTINCT job_id) FROM tenure.attempt WHERE outcome = 'completed'
"""


@dataclass(frozen=True)
class Form:
    """How long, how fast, and when what happens, in seconds from the start."""

    seconds: float
    rate: int
    lease: float
    kills: tuple[float, ...]
    pinned: tuple[float, float]
    batch: int = 20


FULL = Form(600, 2000, 30, tuple(60.0 * n for n in range(1, 10)), (240, 360))
SHORT = Form(40, 1000, 20, (8.0,), (15, 25))


@dataclass
class Saw:
    """What was done and seen while it ran."""

    began: float
    kills: list[float]
    memory: list[int]
    database: float = 0.0
    survivor: float = 0.0


def run(server: Server, report: Report) -> None:
    report.forget("endure:", "bar:endure:")
    form = SHORT if report.short else FULL
    report.title(
        f"{form.rate:,} jobs/s with inserts of {form.batch} for {form.seconds:g} s, one of a "
        f"hundred of {LONG:g} s, on two workers, one killed {len(form.kills)} times; lease "
        f"{form.lease:g} s; horizon pinned from {form.pinned[0]:g} to {form.pinned[1]:g} s"
    )
    with tenure("stamp").place(server) as place:
        with witness() as stalls:
            saw = _live(place, form)
        rows = list(SENT.iter_unpack(sent(place).read_bytes()))
        numbers = {row[1]: row[0] for row in rows}
        history = History.of(
            {row[0]: row[2] for row in rows},
            STAMP.iter_unpack((place.directory / "stamps").read_bytes()),
        )
        _check(place, report, numbers)
        with psycopg.connect(place.url, autocommit=True) as connection:
            lost = connection.execute(_LOST).fetchall()
        losses = [Loss(numbers[job], begun, ended) for job, begun, ended in lost]
    _tell(report, form, saw, history, losses, stalls)


def _live(place: Place, form: Form) -> Saw:
    """Everything in its time; returns when all jobs are done."""
    with pair(place) as workers, ExitStack() as horizon:
        with psycopg.connect(place.url, autocommit=True) as connection:
            until(lambda: connection.execute(_WORKERS).fetchone() == (2,), 60)
        producer = produce(place, "batches", form.rate, form.batch, form.seconds, form.lease, LONG)
        until(lambda: sent(place).stat().st_size > 0, 30)
        saw = Saw(now(), [], [])
        used = family_seconds(place.server), family_seconds(workers.survivor)
        kills, began = list(form.kills), time.monotonic()
        pin: psycopg.Connection[Any] | None = None
        while (at := time.monotonic() - began) < form.seconds:
            if kills and at >= kills[0]:
                kills.pop(0)
                saw.kills.append(workers.kill())
            if pin is None and form.pinned[0] <= at < form.pinned[1]:
                pin = horizon.enter_context(psycopg.connect(place.url))
                pin.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                pin.execute("SELECT count(*) FROM tenure.queue")
            if pin is not None and at >= form.pinned[1]:
                pin.close()
            saw.memory.append(workers.memory())
            time.sleep(0.5)
        produced(place, producer, 120)
        saw.database = family_seconds(place.server) - used[0]
        saw.survivor = family_seconds(workers.survivor) - used[1]
        with psycopg.connect(place.url, autocommit=True) as connection:
            empty = "SELECT NOT EXISTS (SELECT FROM tenure.job)"
            assert wait_for(
                lambda: connection.execute(empty).fetchone() == (True,), 3 * form.lease + 60
            ), "jobs were left"
    return saw


def _check(place: Place, report: Report, numbers: dict[int, int]) -> None:
    """Every job that was acknowledged has one accepted result, and no other is there."""
    with psycopg.connect(place.url, autocommit=True) as connection:
        archived = [
            row[0]
            for row in connection.execute(
                "SELECT id FROM tenure.job_archive WHERE state = 'completed'"
            )
        ]
        [(accepted, distinct)] = connection.execute(_ACCEPTED).fetchall()
    report.line(
        "endure:jobs",
        f"  {len(numbers):,} acknowledged, {len(archived):,} archived, {accepted:,} accepted",
        acknowledged=len(numbers),
        archived=len(archived),
        accepted=accepted,
    )
    report.bar("endure:lost", "acknowledged and not done", len(numbers.keys() - set(archived)), 0)
    twice = len(archived) - len(set(archived)) + accepted - distinct
    report.bar("endure:twice", "done twice, by accepted results", twice, 0)


def _tell(
    report: Report, form: Form, saw: Saw, history: History, losses: list[Loss], stalls: Stalls
) -> None:
    windows = history.windows(saw.began, WINDOW, int(form.seconds // WINDOW))
    for number, waits in enumerate(windows):
        report.line(
            f"endure:{number * WINDOW:g}", f"  {number * WINDOW:4.0f} s: {waits}", **waits.figures()
        )
    killed = {loss.number for loss in losses}
    late = {n: span for n, span in history.over(LONGEST / 1e3).items() if n not in killed}
    by_machine = sum(stalls.during(*span) for span in late.values())
    worst = max((e - b for n, (b, e) in history.spans() if n not in killed), default=0.0) * 1e3
    report.line(
        "endure:machine",
        f"  the machine kept a process that only sleeps waiting {len(stalls.spans)} times, at most "
        f"{stalls.worst * 1e3:.0f} ms; {len(late)} jobs of no killed worker waited over "
        f"{LONGEST:g} ms, {by_machine} of them beside that",
        stalls=len(stalls.spans),
        longest_stall=stalls.worst,
        late=len(late),
    )
    report.bar("endure:worst", "longest wait of jobs of no killed worker", worst, LONGEST, " ms")
    returns, strange = history.returns(losses, saw.kills)
    report.line(
        "endure:losses",
        f"  {len(losses):,} jobs were lost with their worker; from the kill to the next start "
        f"{duration(statistics.median(returns or [0.0]) * 1e3)} at the median",
        losses=len(losses),
        returns=returns,
    )
    report.bar("endure:strange", "losses that no kill explains", strange, 0)
    longest = max(returns, default=0.0) / form.lease
    report.bar("endure:return", "kill to next start, as a share of the lease", longest, RETURN)
    third = len(saw.memory) // 3
    first, last = (statistics.median(p) / 2**20 for p in (saw.memory[:third], saw.memory[-third:]))
    grown = (last / first - 1) * 100
    report.bar(
        "endure:memory",
        f"memory of the survivor's child, {first:.1f} MiB in the first third, {last:.1f} in the "
        "last: grown by",
        grown,
        GROWTH,
        " %",
    )
    report.line(
        "endure:busy",
        f"  of one core: database {saw.database / form.seconds:.0%}, the worker that lived "
        f"{saw.survivor / form.seconds:.0%}",
        database=saw.database / form.seconds,
        survivor=saw.survivor / form.seconds,
    )
    title = f"{form.rate:,} jobs/s for {form.seconds / 60:.2g} min: p50, p95 and p99 wait"
    marks = [at - saw.began for at in saw.kills]
    chart = Timeline(title, WINDOW, windows, marks, form.pinned, "a transaction is held open")
    ENDURANCE.parent.mkdir(parents=True, exist_ok=True)
    ENDURANCE.write_text(chart.svg())
    print(f"  chart: {ENDURANCE}")
