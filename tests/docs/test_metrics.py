"""Every metric that is exported is documented as it is, and none that is not."""

from __future__ import annotations

import re
from pathlib import Path

from tenure._metrics import SERVER, WORKER

PAGE = Path(__file__).parents[2] / "docs/reference/metrics.md"
_ROW = re.compile(r"^\| `(\w+)` \| (\w+) \| (.*?) ?\| (.+) \|$", re.MULTILINE)


def documented() -> dict[str, tuple[str, tuple[str, ...]]]:
    """By name: the type and the labels."""
    rows = _ROW.findall(PAGE.read_text())
    assert len(rows) == len({row[0] for row in rows})
    return {name: (kind, tuple(re.findall(r"`(\w+)`", labels))) for name, kind, labels, _ in rows}


def test_every_metric_is_documented_with_its_type_and_labels() -> None:
    """Shows R37. That all of them are exported is shown against real processes, in
    tests/server and tests/worker."""
    there = {metric.name: (str(metric.kind), metric.labels) for metric in (*SERVER, *WORKER)}
    assert documented() == there


def test_labels_are_few_and_never_a_jobs_id() -> None:
    labels = {label for _, labels in documented().values() for label in labels}
    assert not labels & {"job", "job_id", "id", "key", "worker", "error", "message"}
