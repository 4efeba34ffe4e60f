"""Tables of docs/evidence/benchmarks.md, from a full run: `python -m bench.speed.tables`."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from bench.speed import wait_tables
from bench.speed.chart import FIGURES, drained
from support.markdown import fill, table

PAGE = Path("docs/evidence/benchmarks.md")


def drain(figures: dict[str, Any]) -> str:
    head = [
        "",
        "jobs/s",
        "database, µs",
        "worker, µs",
        "cores",
        "WAL, bytes",
        "commits",
        "statements",
    ]
    return table(
        head,
        [
            [
                row["name"],
                _spread(row["rate"]),
                _spread(row["database_us"]),
                _spread(row["worker_us"]),
                _cores(row),
                f"{row['wal_bytes']['median']:,.0f}",
                _small(row["commits"]["median"]),
                _small(row.get("statements")),
            ]
            for row in drained(figures)
        ],
    )


def enqueue(figures: dict[str, Any]) -> str:
    rows = [value for key, value in figures.items() if key.startswith("enqueue:")]
    head = ["", "how", "jobs/s", "database, µs"]
    return table(
        head,
        [
            [row["name"], row["way"], _spread(row["rate"]), _spread(row["database_us"])]
            for row in rows
        ],
        words=2,
    )


def bars(figures: dict[str, Any]) -> str:
    rows = [value for key, value in figures.items() if key.startswith("bar:")]
    return table(
        ["target", "measured", "wanted", "met"],
        [
            [
                value["what"],
                f"{value['value']:,.2f}{value['unit']}",
                f"{'≥' if value['least'] else '≤'} {value['bar']:g}{value['unit']}",
                "yes" if value["ok"] else "no",
            ]
            for value in rows
        ],
    )


def absent(figures: dict[str, Any]) -> str:
    rows = [value for key, value in figures.items() if key.startswith("absent:")]
    if not rows:
        return "All of them took part."
    return table(["not measured", "why"], [[r["name"], _reason(r["why"])] for r in rows], words=2)


def versions(figures: dict[str, Any]) -> str:
    rows = [value for key, value in figures.items() if key.startswith("about:")]
    return table(
        ["", "version", "as", "kept of a completed job"],
        [[r["name"], r["version"], r["mode"], r["keeps"]] for r in rows],
        words=4,
    )


def charts(_: dict[str, Any]) -> str:
    """What bench.speed.chart draws."""
    rates = "![No-op jobs per second](../pictures/drain.svg)"
    return f"{rates}\n\n![Processor time per job](../pictures/processor.svg)"


def machine(figures: dict[str, Any]) -> str:
    run = figures["run"]
    return (
        f"Run on {run['at'][:10]}, on {run['cores']} cores, with PostgreSQL "
        f"{figures['postgresql'].split()[0]} and Python {run['python']}."
    )


TABLES = {
    "machine": machine,
    "charts": charts,
    "drain": drain,
    "enqueue": enqueue,
    "bars": bars,
    "absent": absent,
    "versions": versions,
    **wait_tables.TABLES,
}


def _spread(value: dict[str, float]) -> str:
    return f"{value['median']:,.0f} ({value['low']:,.0f}–{value['high']:,.0f})"


def _reason(why: str) -> str:
    """The first line, in a cell, up to what follows from it, without where it was fetched from."""
    first = why.strip().splitlines()[0].partition(", we can conclude")[0]
    return re.sub(r"https?://\S+", "…", first)


def _cores(row: dict[str, Any]) -> str:
    """How many were busy: with the database, and with the worker."""
    rate = row["rate"]["median"] / 1e6
    return " + ".join(f"{row[of]['median'] * rate:.2f}" for of in ("database_us", "worker_us"))


def _small(value: float | None) -> str:
    """Per job, to two digits that count."""
    return "–" if value is None else f"{value:.2g}"


def main() -> int:
    if not FIGURES.exists():
        print(f"no {FIGURES}; run: just bench")
        return 1
    found = json.loads(FIGURES.read_text())
    figures = found["figures"] | {"run": {name: found[name] for name in ("at", "python", "cores")}}
    parts = {name: made(figures) for name, made in TABLES.items()}
    PAGE.write_text(fill(PAGE.read_text(), parts))
    print(f"written: {PAGE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
