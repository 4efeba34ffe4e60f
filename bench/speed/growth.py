"""Does a job cost and wait the same whatever else is in the tables? A real worker in each
condition, in alternation with the empty case in the same server."""

from __future__ import annotations

import statistics
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bench.speed import conditions
from bench.speed.contender import tenure
from bench.speed.passing import passed
from bench.speed.streams import stream
from bench.speed.waits import Waits, beside
from bench.witness import witness

if TYPE_CHECKING:
    from bench.report import Report
    from bench.server import Server
    from bench.speed.conditions import Condition
    from bench.speed.contender import Contender, Place
    from bench.speed.passing import Passed
    from bench.witness import Stalls

RATE, URGENT, BAR = 50, 9, 1.5


@dataclass(frozen=True)
class Sizes:
    """How much is there in each condition, and how much is measured."""

    due: int
    later: int
    archived: int
    pinned: int
    holders: int
    rounds: int
    jobs: int
    seconds: int


FULL = Sizes(1_000_000, 10_000_000, 10_000_000, 500_000, 50, rounds=2, jobs=20_000, seconds=10)
SHORT = Sizes(50_000, 50_000, 50_000, 50_000, 5, rounds=1, jobs=6_000, seconds=3)


@dataclass
class Case:
    """A condition in its place, and what was measured. `busy`: jobs are due all the time, and the
    stream is of urgent ones; else it meets a worker with nothing to do."""

    condition: Condition
    contender: Contender
    place: Place
    busy: bool
    kept: int
    costs: list[Passed] = field(default_factory=list)
    spans: list[tuple[float, float]] = field(default_factory=list)

    @property
    def cost(self) -> float:
        """Processor time of database and worker per job, in microseconds."""
        return statistics.median(passed.busy_us for passed in self.costs)


def run(server: Server, report: Report) -> None:
    report.forget("growth:", "bar:growth:")
    sizes = SHORT if report.short else FULL
    report.title(
        f"Growth: {sizes.rounds} rounds of {sizes.jobs:,} jobs drained by a worker, then {RATE}/s "
        f"for {sizes.seconds} s"
    )
    with ExitStack() as stack:
        idle = [
            _make(server, stack, condition)
            for condition in (
                conditions.empty(),
                conditions.later(sizes.later),
                conditions.archived(sizes.archived),
                conditions.pinned(sizes.pinned),
                conditions.held(sizes.holders),
            )
        ]
        with witness() as stalls:
            for seed in range(sizes.rounds):
                for case in idle:
                    _measure(server, case, sizes, seed)
        _compare(report, idle, stalls)
        # As many as are worked off while it is measured, and more; against a million.
        rate = max(passed.rate for passed in idle[0].costs)
        some = int(sizes.jobs + rate * (sizes.seconds + 5) * 1.5)
        busy = [
            _make(server, stack, conditions.due(count), kept=count)
            for count in (some, max(sizes.due, 2 * some))
        ]
        with witness() as stalls:
            for seed in range(sizes.rounds):
                for case in busy:
                    _measure(server, case, sizes, seed)
        _compare(report, busy, stalls)


def _make(server: Server, stack: ExitStack, condition: Condition, kept: int = 0) -> Case:
    contender = tenure()
    place = stack.enter_context(contender.place(server))
    began = time.monotonic()
    with server.admin(place.url) as admin:
        condition.prepare(admin, stack)
    took = time.monotonic() - began
    if took > 1:
        print(f"  (made: {condition.name}, {took:.0f} s)", flush=True)
    return Case(condition, contender, place, bool(kept), kept)


def _measure(server: Server, case: Case, sizes: Sizes, seed: int) -> None:
    place = case.place
    with case.condition.meanwhile(server, place.url):
        if not case.busy:
            with server.admin(place.url) as admin:
                conditions.fill(admin, sizes.jobs)
        before = place.count()
        with case.contender.work(place) as running:
            case.costs.append(passed(running, sizes.jobs))
            words = ("callers", RATE, sizes.seconds, seed, 0, URGENT if case.busy else 5)
            found = stream(place, *words, seconds=sizes.seconds)
            case.spans += found.values()
            if case.busy:
                taken = place.count() - before
                assert taken < case.kept, f"{case.condition.name}: none were left while it ran"
    if case.busy:
        with server.admin(place.url) as admin:
            conditions.fill(admin, place.count() - before, "-1 day")


def _compare(report: Report, cases: list[Case], stalls: Stalls) -> None:
    base = cases[0]
    waits = {case.condition.name: Waits.of(case.spans) for case in cases}
    for case in cases:
        name, calm = case.condition.name, beside(case.spans, stalls)
        database, worker = (
            statistics.median(getattr(c, part) for c in case.costs)
            for part in ("database_us", "worker_us")
        )
        report.line(
            f"growth:{name}",
            f"  {name}: per job {database:.0f} µs of the database and {worker:.0f} of the worker; "
            f"waits {waits[name]}; beside stalls of the machine {calm or 'none'}",
            database_us=database,
            worker_us=worker,
            calm=calm.figures() if calm else None,
            **waits[name].figures(),
        )
    for case in cases[1:]:
        name = case.condition.name
        ratio = case.cost / base.cost
        report.bar(f"growth:{name}:cost", f"{name}, processor time per job", ratio, BAR, " ×")
        ratio = waits[name].p99 / waits[base.condition.name].p99
        report.bar(f"growth:{name}:p99", f"{name}, p99 wait", ratio, BAR, " ×")
