"""A chart of waits over time: three lines on a logarithmic scale, with marks and a span. SVG by
hand that follows light and dark and says in words what it shows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bench.speed.waits import Waits

WIDTH, HEIGHT = 760, 360
LEFT, RIGHT, TOP, BOTTOM = 64, 48, 56, 56
LINES = (("p50", "a", "none"), ("p95", "b", "7 3"), ("p99", "c", "2 3"))
_STYLE = """
text { font: 12px system-ui, sans-serif; }
.back { fill: #ffffff; } .ink { fill: #1f2430; } .dim { fill: #5b6270; }
.rule { stroke: #d5d8de; } .span { fill: #eceff4; }
.kill { stroke: #b3261e; } .cross { fill: #b3261e; }
.line { fill: none; stroke-width: 2; stroke-linejoin: round; }
.a { stroke: #0b6bcb; } .b { stroke: #9a5b00; } .c { stroke: #7a2fb5; }
@media (prefers-color-scheme: dark) {
.back { fill: #14171d; } .ink { fill: #e7eaf0; } .dim { fill: #a3abba; }
.rule { stroke: #363c48; } .span { fill: #252b36; }
.kill { stroke: #ff8a80; } .cross { fill: #ff8a80; }
.a { stroke: #6bb3ff; } .b { stroke: #f0b35a; } .c { stroke: #cf9bff; }
}
"""
_HEAD = (
    f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
    'aria-labelledby="timeline-title timeline-words">'
)


@dataclass(frozen=True)
class Timeline:
    """Waits of windows of equal length, when workers were killed, and a span with its reason."""

    title: str
    window: float
    waits: Sequence[Waits]
    kills: Sequence[float]
    span: tuple[float, float]
    span_says: str

    @property
    def seconds(self) -> float:
        """How long it is."""
        return self.window * len(self.waits)

    def words(self) -> str:
        """What the chart shows, for those who do not see it."""
        p50s, p99s = ([getattr(w, name) for w in self.waits] for name in ("p50", "p99"))
        return (
            f"Waits of jobs in windows of {self.window:g} seconds over {self.seconds:g} seconds. "
            f"p50 lies between {duration(min(p50s))} and {duration(max(p50s))}, p99 between "
            f"{duration(min(p99s))} and {duration(max(p99s))}. A worker was killed "
            f"{len(self.kills)} times. From {self.span[0]:g} to {self.span[1]:g} seconds: "
            f"{self.span_says}."
        )

    def svg(self) -> str:
        """The chart as a document."""
        parts = [
            _HEAD,
            f'<title id="timeline-title">{escape(self.title)}</title>',
            f'<desc id="timeline-words">{escape(self.words())}</desc>',
            f"<style>{_STYLE}</style>",
            f'<rect class="back" width="{WIDTH}" height="{HEIGHT}"/>',
            _text(LEFT, 20, self.title, "ink", "start"),
            *self._span(),
            *self._scales(),
            *self._kills(),
            *self._lines(),
            "</svg>",
        ]
        return "\n".join(parts) + "\n"

    def _span(self) -> Iterator[str]:
        first, last = map(self._x, self.span)
        yield (
            f'<rect class="span" x="{first:.1f}" y="{TOP}" width="{last - first:.1f}" '
            f'height="{HEIGHT - TOP - BOTTOM}"/>'
        )
        yield _text((first + last) / 2, TOP - 8, self.span_says, "dim", "middle")

    def _scales(self) -> Iterator[str]:
        low, high = self._decades()
        for decade in range(low, high + 1):
            at = self._y(10.0**decade)
            yield (
                f'<line class="rule" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>'
            )
            yield _text(LEFT - 8, at + 4, duration(10.0**decade), "dim", "end")
        step = 60 if self.seconds >= 300 else 10
        for second in range(0, int(self.seconds) + 1, step):
            says = f"{second // 60} min" if step == 60 else f"{second} s"
            yield _text(self._x(second), HEIGHT - BOTTOM + 28, says, "dim", "middle")
        yield _text(
            LEFT, HEIGHT - 8, "wait from enqueue to start, logarithmic; ✕ worker killed", "dim"
        )

    def _kills(self) -> Iterator[str]:
        for kill in self.kills:
            at = self._x(kill)
            yield (
                f'<line class="kill" x1="{at:.1f}" x2="{at:.1f}" y1="{TOP}" '
                f'y2="{HEIGHT - BOTTOM}" stroke-dasharray="1 4"/>'
            )
            yield _text(at, HEIGHT - BOTTOM + 13, "✕", "cross", "middle")

    def _lines(self) -> Iterator[str]:
        lowest = float(HEIGHT)
        for name, style, dashes in LINES:
            values = [getattr(waits, name) for waits in self.waits]
            points = " ".join(
                f"{self._x((n + 0.5) * self.window):.1f},{self._y(value):.1f}"
                for n, value in enumerate(values)
            )
            yield f'<polyline class="line {style}" stroke-dasharray="{dashes}" points="{points}"/>'
            lowest = min(lowest - 13, self._y(values[-1]) + 4)  # Names do not cover each other.
            yield _text(WIDTH - RIGHT + 4, lowest, name, "ink")

    def _decades(self) -> tuple[int, int]:
        values = [getattr(waits, name) for waits in self.waits for name, _, _ in LINES]
        low = math.floor(math.log10(max(min(values), 0.1)))
        return low, max(low + 1, math.ceil(math.log10(max(values))))

    def _x(self, seconds: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * seconds / self.seconds

    def _y(self, milliseconds: float) -> float:
        low, high = self._decades()
        share = (math.log10(max(milliseconds, 10.0**low)) - low) / (high - low)
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share


def duration(milliseconds: float) -> str:
    """In the unit that reads best."""
    if milliseconds >= 1000:
        return f"{milliseconds / 1000:.3g} s"
    return f"{milliseconds:.3g} ms"


def _text(x: float, y: float, says: str, style: str, anchor: str = "start") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text class="{style}" {place}>{escape(says)}</text>'
