"""How fast jobs are enqueued: one by one, in callers' transactions, and in bulk."""

from __future__ import annotations

import statistics
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from bench.measure import Spread
from bench.speed import field, meters
from bench.speed.contender import ContenderError, Keeping, bare, tenure

if TYPE_CHECKING:
    from bench.report import Report
    from bench.server import Server
    from bench.speed.contender import Contender

ROUNDS = 3
POOL, OPEN, COPY = 0.6, 0.8, 0.7
WAYS = {
    "enqueue": "one by one, through a pool",
    "enqueue-open": "one by one, open connection",
    "enqueue-within": "in callers' transactions, with a row of theirs",
    "fill": "in bulk",
}
MORE = {"Tenure": ("enqueue-open", "enqueue-within"), "bare": ("enqueue-open",)}


@dataclass(frozen=True)
class Sizes:
    """How many jobs."""

    one_by_one: int
    bulk: int


@dataclass(frozen=True)
class Round:
    """Jobs per second, and what one costs the database."""

    rate: float
    database_us: float


def run(server: Server, report: Report) -> None:
    report.title(f"Jobs enqueued per second: median of {ROUNDS} alternating rounds (range)")
    report.forget("enqueue:", "bar:enqueue:")
    peers, _ = field.peers()
    contenders = {"bare": bare(), "Tenure": tenure()}
    contenders |= {entry.name: entry.contender for entry in peers}
    with ExitStack() as stack:
        redis = None
        if any(contender.redis for contender in contenders.values()):
            redis = stack.enter_context(Keeping())
        rounds = measure(server, contenders, redis, ROUNDS, Sizes(500, 5_000))
    for (name, verb), several in sorted(
        rounds.items(), key=lambda item: list(WAYS).index(item[0][1])
    ):
        rate = Spread.of([once.rate for once in several])
        cost = Spread.of([once.database_us for once in several])
        report.line(
            f"enqueue:{verb}:{name}",
            f"  {WAYS[verb]:48} {name:16} {rate.median:>8,.0f} ({rate.low:,.0f}–{rate.high:,.0f})"
            f"  µs: database {cost}",
            name=name,
            way=WAYS[verb],
            rate=asdict(rate),
            database_us=asdict(cost),
        )
    _judge(report, rounds)


def measure(
    server: Server,
    contenders: dict[str, Contender],
    redis: Keeping | None,
    rounds: int,
    sizes: Sizes,
) -> dict[tuple[str, str], list[Round]]:
    """Rounds by contender and verb; each contender has a fresh store in each round."""
    found: dict[tuple[str, str], list[Round]] = {}
    for _ in range(rounds):
        for name, contender in contenders.items():
            with contender.place(server, redis) as place:
                for verb in ("enqueue", *MORE.get(name, ()), "fill"):
                    jobs = sizes.bulk if verb == "fill" else sizes.one_by_one
                    before = meters.read(place)
                    try:
                        seconds = contender.call(place, verb, jobs)["seconds"]
                    except ContenderError as error:
                        print(f"  {name}: {verb} failed: {error}", flush=True)
                        continue
                    cost = (meters.read(place) - before).per(jobs)["database_us"]
                    found.setdefault((name, verb), []).append(Round(jobs / seconds, cost))
    return found


def _judge(report: Report, rounds: dict[tuple[str, str], list[Round]]) -> None:
    """Tenure against the bare insert with its notify, and against bare COPY, round by round."""
    for verb, bar in (("enqueue", POOL), ("enqueue-open", OPEN), ("fill", COPY)):
        pairs = zip(rounds["Tenure", verb], rounds["bare", verb], strict=True)
        ratio = statistics.median(ours.rate / bares.rate for ours, bares in pairs)
        report.at_least(f"enqueue:{verb}", f"{WAYS[verb]}, against bare", ratio, bar, " ×")
