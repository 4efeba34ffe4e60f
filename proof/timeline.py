"""A picture of a run: when which fault was in force, and how many jobs ended meanwhile. SVG by
hand that follows light and dark and says in words what it shows."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from proof.report import Report

NAMES, WIDE, RIGHT, TOP, ROW, PACE = 250, 560, 60, 72, 24, 110
_STYLE = """
text { font: 12px system-ui, sans-serif; }
.back { fill: #ffffff; } .ink { fill: #1f2430; } .dim { fill: #5b6270; }
.rule { stroke: #d5d8de; } .part { stroke: #9aa1ad; stroke-dasharray: 3 3; }
.fault { fill: #b3261e; } .pace { fill: none; stroke: #0b6bcb; stroke-width: 1.5; }
@media (prefers-color-scheme: dark) {
.back { fill: #14171d; } .ink { fill: #e7eaf0; } .dim { fill: #a3abba; }
.rule { stroke: #363c48; } .part { stroke: #6b7383; }
.fault { fill: #ff8a80; } .pace { stroke: #6bb3ff; }
}
"""


def draw(report: Report, path: Path) -> None:
    """Write the picture: a row for each kind of fault, and the pace of jobs below if known."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(_lines(report)) + "\n")


def _lines(report: Report) -> Iterator[str]:
    counts = Counter(kind for kind, _, _ in report.faults)
    ends = [until for _, _, until in report.faults] + [at for at, _ in report.pace]
    seconds = max([1.0, *ends, *(at for _, at in report.parts)])
    bottom = TOP + ROW * len(counts) + (PACE if report.pace else 0)
    width, height = NAMES + WIDE + RIGHT, bottom + 40
    words = _words(counts, seconds, report.pace)
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        'aria-labelledby="faults-title faults-words">'
    )
    yield '<title id="faults-title">Faults over time</title>'
    yield f'<desc id="faults-words">{escape(words)}</desc>'
    yield f"<style>{_STYLE}</style>"
    yield f'<rect class="back" width="{width}" height="{height}"/>'
    yield f'<text class="ink" x="8" y="20">{escape(words)}</text>'
    yield from _parts(report, seconds, bottom)
    for number, kind in enumerate(counts):
        spans = [(since, until) for this, since, until in report.faults if this == kind]
        yield from _row(f"{kind} ({counts[kind]:,})", spans, TOP + ROW * number, seconds)
    if report.pace:
        yield from _pace(report.pace, seconds, bottom)
    yield from _scale(seconds, bottom)
    yield "</svg>"


def _words(counts: Counter[str], seconds: float, pace: list[tuple[float, float]]) -> str:
    text = f"{counts.total():,} faults of {len(counts)} kinds in {seconds:,.0f} s"
    if not pace:
        return text
    rates = [rate for _, rate in pace]
    return f"{text}; {min(rates):,.0f} to {max(rates):,.0f} jobs ended per second"


def _x(at: float, seconds: float) -> float:
    return NAMES + WIDE * min(max(at, 0.0), seconds) / seconds


def _parts(report: Report, seconds: float, bottom: int) -> Iterator[str]:
    for number, (title, at) in enumerate(report.parts):
        x = _x(at, seconds)
        # In turns on two lines, so that neighbours can be read.
        y = 40 + 16 * (number % 2)
        yield f'<path class="part" d="M{x:.1f} {y + 4}V{bottom}"/>'
        yield f'<text class="dim" x="{x + 3:.1f}" y="{y}">{escape(title)}</text>'


def _name(name: str, y: int) -> str:
    return f'<text class="ink" x="{NAMES - 8}" y="{y}" text-anchor="end">{escape(name)}</text>'


def _row(name: str, spans: list[tuple[float, float]], y: int, seconds: float) -> Iterator[str]:
    yield _name(name, y + 15)
    yield f'<path class="rule" d="M{NAMES} {y + 11}h{WIDE}"/>'
    for since, until in spans:
        x = _x(since, seconds)
        # What took no time must be seen too.
        wide = max(2.0, _x(until, seconds) - x)
        yield f'<rect class="fault" x="{x:.1f}" y="{y + 4}" width="{wide:.1f}" height="14"/>'


def _pace(pace: list[tuple[float, float]], seconds: float, bottom: int) -> Iterator[str]:
    most = max(1.0, *(rate for _, rate in pace))
    tall = PACE - 24
    points = " ".join(
        f"{_x(at, seconds):.1f},{bottom - tall * rate / most:.1f}" for at, rate in pace
    )
    head = bottom - tall + 4
    yield _name("jobs ended per second", head)
    yield f'<text class="dim" x="{NAMES + WIDE + 6}" y="{head}">{most:,.0f}</text>'
    yield f'<polyline class="pace" points="{points}"/>'


def _scale(seconds: float, bottom: int) -> Iterator[str]:
    yield f'<path class="rule" d="M{NAMES} {bottom}h{WIDE}"/>'
    for quarter in range(5):
        at = seconds * quarter / 4
        yield (
            f'<text class="dim" x="{_x(at, seconds):.1f}" y="{bottom + 18}" '
            f'text-anchor="middle">{at:,.0f} s</text>'
        )
