"""Charts for the documentation, from what a full run wrote: `python -m bench.speed.chart`."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

if TYPE_CHECKING:
    from collections.abc import Sequence

FIGURES = Path(".cache/bench/speed.json")
# Drawn by the run itself, from every wait.
ENDURANCE = FIGURES.with_name("endurance.svg")
PICTURES = Path("docs/pictures")
NAMES, BARS, ROW, TOP = 250, 430, 28, 64
_STYLE = """
text { font: 13px system-ui, sans-serif; fill: #1f2328; }
.head { font-size: 15px; font-weight: 600; }
.note, .value { fill: #59636e; }
.first { fill: #0b6e5f; } .second { fill: #7fc4b6; }
.ours .first { fill: #0b6e5f; } .others .first { fill: #6e7781; } .others .second { fill: #b6bec8; }
.spread { stroke: #1f2328; stroke-width: 1.5; }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3; }
.note, .value { fill: #9198a1; }
.ours .first { fill: #3fb8a2; } .ours .second { fill: #1d6659; }
.others .first { fill: #8b949e; } .others .second { fill: #4a525c; }
.spread { stroke: #e6edf3; }
}
"""


@dataclass(frozen=True)
class Row:
    """A name with one bar of one or two parts, and the spread of the first if it has one."""

    name: str
    parts: tuple[float, ...]
    spread: tuple[float, float] | None = None


def chart(title: str, note: str, rows: Sequence[Row], form: str) -> str:
    """An SVG of bars, the longest of which has the whole width."""
    most = max(max(sum(row.parts), row.spread[1] if row.spread else 0.0) for row in rows)
    width, height = NAMES + BARS + 130, TOP + ROW * len(rows) + 8
    text = ". ".join(f"{row.name}: {form.format(sum(row.parts))}" for row in rows)
    named = 'role="img" aria-labelledby="title desc"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" {named}>',
        f'<title id="title">{escape(title)}</title>',
        f'<desc id="desc">{escape(f"{note}. {text}.")}</desc>',
        f"<style>{_STYLE}</style>",
        f'<text class="head" x="8" y="22">{escape(title)}</text>',
        f'<text class="note" x="8" y="44">{escape(note)}</text>',
    ]
    for number, row in enumerate(rows):
        lines += _bar(row, TOP + ROW * number, BARS / most, form)
    return "\n".join([*lines, "</svg>", ""])


def _bar(row: Row, y: int, scale: float, form: str) -> list[str]:
    kind = "ours" if row.name.startswith("Tenure") else "others"
    lines = [f'<g class="{kind}">']
    lines.append(f'<text x="{NAMES - 8}" y="{y + 15}" text-anchor="end">{escape(row.name)}</text>')
    x = float(NAMES)
    for part, which in zip(row.parts, ("first", "second"), strict=False):
        wide = part * scale
        lines.append(f'<rect class="{which}" x="{x:.1f}" y="{y}" width="{wide:.1f}" height="20"/>')
        x += wide
    if row.spread:
        low, high = (NAMES + end * scale for end in row.spread)
        lines.append(f'<path class="spread" d="M{low:.1f} {y + 10}H{high:.1f}"/>')
        x = max(x, high)
    value = form.format(sum(row.parts))
    lines.append(f'<text class="value" x="{x + 6:.1f}" y="{y + 15}">{value}</text>')
    return [*lines, "</g>"]


def drained(figures: dict[str, Any]) -> list[dict[str, Any]]:
    """What was drained, the quickest first."""
    rows = [value for key, value in figures.items() if key.startswith("drain:")]
    return sorted(rows, key=lambda row: -float(row["rate"]["median"]))


def charts(figures: dict[str, Any]) -> dict[str, str]:
    """By file: how fast, and at what cost."""
    rows = drained(figures)
    rates = [
        Row(row["name"], (row["rate"]["median"],), (row["rate"]["low"], row["rate"]["high"]))
        for row in rows
    ]
    costs = [
        Row(row["name"], (row["database_us"]["median"], row["worker_us"]["median"])) for row in rows
    ]
    costs.sort(key=lambda row: sum(row.parts))
    return {
        "drain.svg": chart(
            "No-op jobs worked off per second", "Median and range of three rounds", rates, "{:,.0f}"
        ),
        "processor.svg": chart(
            "Processor time of a job, µs",
            "First part: the database. Second part: the worker",
            costs,
            "{:,.0f}",
        ),
    }


def main() -> int:
    if not FIGURES.exists():
        print(f"no {FIGURES}; run: just bench speed draining")
        return 1
    PICTURES.mkdir(exist_ok=True)
    pictures = charts(json.loads(FIGURES.read_text())["figures"])
    if ENDURANCE.exists():
        pictures[ENDURANCE.name] = ENDURANCE.read_text()
    for name, text in pictures.items():
        (PICTURES / name).write_text(text)
        print(f"written: {PICTURES / name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
