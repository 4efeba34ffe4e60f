"""Tables of waits for docs/evidence/benchmarks.md; `bench.speed.tables` fills them in."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Any

from bench.speed.timeline import duration
from support.markdown import table

if TYPE_CHECKING:
    from collections.abc import Iterator

Figures = dict[str, Any]
_WAITS = ["p50", "p95", "p99", "worst"]


def arrivals(figures: Figures) -> str:
    """Jobs that arrive one by one, at low rates."""
    subjects = {"tenure": "Tenure", "PgQueuer": "PgQueuer"}
    rows = []
    for key, value in _under(figures, "arrive:"):
        rate, _, what = key.partition(":")
        if what.endswith((":calm", ":shares")) or "p50" not in value:
            continue
        how = f"{rate}/s" if what in subjects else f"{rate}/s, {what}"
        rows.append([how, subjects.get(what, "Tenure"), *_waits(value)])
    return table(["jobs arrive at", "", *_WAITS], rows, words=2)


def steady(figures: Figures) -> str:
    """Inserts and work at the same time."""
    head = [
        "share of the drain rate",
        "arrived",
        "left at the end",
        *_WAITS,
        "database, µs",
        "worker, µs",
    ]
    return table(
        head,
        [
            [
                f"{float(share):.0%}",
                f"{value['came']:,.0f}/s",
                f"{value['left']:,}",
                *_waits(value),
                f"{value['database_us']:.0f}",
                f"{value['worker_us']:.0f}",
            ]
            for share, value in _under(figures, "steady:")
        ],
    )


def slots(figures: Figures) -> str:
    """Handlers that wait for 10 ms."""
    one, rate = figures["slots:1"], figures["slots"]["rate"]
    return (
        f"{rate['median']:,.0f} jobs/s ({rate['low']:,.0f}–{rate['high']:,.0f}), "
        f"{one['worker_us']:.0f} µs of worker time each. The worker's core is full, with "
        f"{figures['slots']['busy']:.0f} slots busy at a time."
    )


def growth(figures: Figures) -> str:
    """Cost and latency in a large database."""
    return table(
        ["the database holds", "database, µs", "worker, µs", *_WAITS],
        [
            [name, f"{value['database_us']:.0f}", f"{value['worker_us']:.0f}", *_waits(value)]
            for name, value in _under(figures, "growth:")
        ],
    )


def endurance(figures: Figures) -> str:
    """The outcome of the jobs of ten minutes."""
    jobs, losses, machine = (figures[f"endure:{name}"] for name in ("jobs", "losses", "machine"))
    back = losses["returns"] or [0.0]
    return (
        f"{jobs['acknowledged']:,} jobs were acknowledged and {jobs['archived']:,} are done, each "
        f"with one accepted result. {losses['losses']:,} were lost with a killed worker and "
        f"started again {statistics.median(back):.1f} s after the kill (median), {max(back):.1f} s "
        f"at most. Of all others, {machine['late']:,} waited longer than 2 s.\n\n"
        "![Waits over ten minutes](../pictures/endurance.svg)"
    )


TABLES = {
    "arrivals": arrivals,
    "steady": steady,
    "slots": slots,
    "growth": growth,
    "endurance": endurance,
}


def _under(figures: Figures, prefix: str) -> Iterator[tuple[str, Any]]:
    for key, value in figures.items():
        if key.startswith(prefix):
            yield key.removeprefix(prefix), value


def _waits(value: dict[str, float]) -> list[str]:
    return [duration(value[name]) for name in _WAITS]
