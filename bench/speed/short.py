"""The short form, for CI: Tenure and the bare loop alone, with bars that a regression misses.

Ratios are of the best rounds of both, or of the best pair of rounds: a neighbour on a shared
machine slows down now the one and now the other, by more than any regression would. A part that
misses a bar is measured once more; what is missed twice is missed. The bare loop waits for the
disk while Tenure computes, so the bars fall by as much as the processor is slower than usual.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.speed import drain, draining, enqueuing, field
from bench.speed.contender import bare, tenure
from support.machine import slowdown

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bench.report import Report
    from bench.server import Server

# What was reached, where that is less than what the full form wants.
REACHED = {"noop": 0.45, "enqueue": 0.48, "enqueue-open": 0.4, "fill": 0.35}
# Bars of 5,000 and 1,000 jobs/s, for handlers in threads and in processes, are ratios here because
# machines differ: where they were set, the bare loop did 41,000 at this size of its batches.
WANTED = {
    "noop": draining.BARE,
    "noop_thread": draining.THREADS / 41_000,
    "noop_process": draining.PROCESSES / 41_000,
    "enqueue": enqueuing.POOL,
    "enqueue-open": enqueuing.OPEN,
    "fill": enqueuing.COPY,
}
BARS = {name: 0.8 * min(bar, REACHED.get(name, bar)) for name, bar in WANTED.items()}
BATCH = 500
ROUNDS = 2
JOBS = {"bare": 20_000, "noop": 12_000, "noop_thread": 4_000, "noop_process": 600}
ONE_BY_ONE, BULK = 1_000, 10_000


def run(server: Server, report: Report) -> None:
    for part in (_draining, _enqueuing):
        _twice(part, server, report)


def _twice(part: Callable[[Server, Report], None], server: Server, report: Report) -> None:
    known = len(report.missed)
    part(server, report)
    if report.missed[known:]:
        print("  once more, in case the machine was busy", flush=True)
        del report.missed[known:]
        part(server, report)


def _draining(server: Server, report: Report) -> None:
    report.title(f"No-op jobs worked off by one child, {ROUNDS} alternating rounds")
    entries = {"bare": field.Entry("bare loop", bare(BATCH))}
    entries |= {
        task: field.Entry(f"Tenure, {task}", tenure(task)) for task in JOBS if task != "bare"
    }
    rounds: dict[str, list[drain.Round]] = {name: [] for name in entries}
    for _ in range(ROUNDS):
        for name, entry in entries.items():
            rounds[name].append(drain.drain(entry, server, None, JOBS[name]))
    for name, entry in entries.items():
        draining.show(report, entry, rounds[name], {})
    for name in ("noop", "noop_thread", "noop_process"):
        _judge(report, name, rounds[name], rounds["bare"])


def _enqueuing(server: Server, report: Report) -> None:
    report.title(f"Jobs enqueued per second, {ROUNDS} alternating rounds")
    rounds = enqueuing.measure(
        server,
        {"bare": bare(), "Tenure": tenure()},
        None,
        ROUNDS,
        enqueuing.Sizes(ONE_BY_ONE, BULK),
    )
    for (name, verb), several in rounds.items():
        rate = max(once.rate for once in several)
        report.line(f"short:{verb}:{name}", f"  {verb:16} {name:8} {rate:>8,.0f}", rate=rate)
    for verb in ("enqueue", "enqueue-open", "fill"):
        _judge(report, verb, rounds["Tenure", verb], rounds["bare", verb])


def _judge(
    report: Report,
    name: str,
    ours: Sequence[drain.Round | enqueuing.Round],
    bares: Sequence[drain.Round | enqueuing.Round],
) -> None:
    best = max(once.rate for once in ours) / max(once.rate for once in bares)
    pairs = [one.rate / other.rate for one, other in zip(ours, bares, strict=True)]
    ratio = max(best, *pairs)
    bar = BARS[name] / slowdown()
    report.at_least(f"short:{name}", f"{name} against bare", ratio, bar, " ×")
