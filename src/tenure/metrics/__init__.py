"""Metrics in Prometheus' text format: what a metric is, and the page that one answers with.

Which metrics there are is in `table`; who knows their values, in `tenure.server` and
`tenure.worker`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Kind(StrEnum):
    """How Prometheus reads a metric."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric: its name, the names of its labels, and a sentence that says what it is."""

    name: str
    kind: Kind
    labels: tuple[str, ...]
    help: str


class Page:
    """Metrics with their values, for a scraper. A metric without a value has no line."""

    def __init__(self) -> None:
        self._lines: dict[Metric, list[str]] = {}

    def put(self, metric: Metric, value: float, *labels: str) -> None:
        """One value, by the metric's labels in their order."""
        pairs = zip(metric.labels, labels, strict=True)
        self._add(metric, metric.name, [_pair(*pair) for pair in pairs], value)

    def spread(
        self,
        metric: Metric,
        bounds: Sequence[float],
        counts: Sequence[int],
        total: float,
        *labels: str,
    ) -> None:
        """A histogram: how many were counted up to each bound and beyond the last; the sum."""
        pairs = [_pair(*pair) for pair in zip(metric.labels, labels, strict=True)]
        below = list(accumulate(counts))
        for bound, count in zip([*map(_number, bounds), "+Inf"], below, strict=True):
            self._add(metric, f"{metric.name}_bucket", [*pairs, _pair("le", bound)], count)
        self._add(metric, f"{metric.name}_sum", pairs, total)
        self._add(metric, f"{metric.name}_count", pairs, below[-1])

    def _add(self, metric: Metric, name: str, pairs: Sequence[str], value: float) -> None:
        labels = f"{{{','.join(pairs)}}}" if pairs else ""
        self._lines.setdefault(metric, []).append(f"{name}{labels} {_number(value)}")

    def text(self) -> str:
        """The page."""
        lines = []
        for metric, values in self._lines.items():
            lines.append(f"# HELP {metric.name} {metric.help}")
            lines.append(f"# TYPE {metric.name} {metric.kind}")
            lines += values
        return "".join(f"{line}\n" for line in lines)


def _pair(name: str, value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
    return f'{name}="{escaped}"'


def _number(value: float) -> str:
    return repr(int(value)) if value == int(value) else repr(float(value))
