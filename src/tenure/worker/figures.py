"""A worker's metrics: what its children have counted, those that are gone with it."""

from collections import Counter
from collections.abc import Iterable, Mapping
from time import time
from typing import Any

from tenure.job import boottime
from tenure.metrics import Page, table

# What a child counts, and what is shown of it.
_COUNTED = {
    "lost": table.WORKER_LOST,
    "rescued": table.WORKER_RESCUED,
    "claims": table.WORKER_CLAIMS,
    "claimed": table.WORKER_CLAIMED,
    "renewed": table.WORKER_RENEWED,
    "late": table.WORKER_LATE,
    "ticks": table.WORKER_TICKS,
    "tick_jobs": table.WORKER_TICK_JOBS,
}
_THERE = {
    "slots": table.WORKER_SLOTS,
    "running": table.WORKER_RUNNING,
    "leases": table.WORKER_LEASES,
}
Counts = Mapping[str, Any]


class Figures:
    """Counters that outlive the children who counted."""

    def __init__(self) -> None:
        self._began_at = time()
        self._gone: Counter[tuple[str, ...]] = Counter()
        self._ended: Counter[str] = Counter()

    def keep(self, counts: Counts, *, how: str) -> None:
        """A child is gone: what it had counted stays."""
        self._gone.update(_flat(counts))
        self._ended[how] += 1

    def page(self, children: Iterable[Counts], *, wanted: int, draining: bool) -> str:
        """The metrics of a worker whose living children have counted this."""
        there = list(children)
        page = Page()
        page.put(table.WORKER_STARTED_AT, self._began_at)
        page.put(table.WORKER_DRAINING, draining)
        page.put(table.WORKER_CHILDREN, len(there))
        page.put(table.WORKER_WANTED, wanted)
        for how in {"drained", "crashed", *self._ended}:
            page.put(table.WORKER_CHILDREN_ENDED, self._ended[how], how)
        for name, metric in _THERE.items():
            page.put(metric, sum(counts.get(name, 0) for counts in there))
        beats = [counts["beat_at"] for counts in there if counts.get("beat_at")]
        if beats:
            page.put(table.WORKER_BEAT, max(boottime() - min(beats), 0.0))
        counted = self._gone.copy()
        for counts in there:
            counted.update(_flat(counts))
        _counters(page, counted)
        return page.text()


def _flat(counts: Counts) -> Counter[tuple[str, ...]]:
    """The counters of one child, by their names and labels."""
    flat: Counter[tuple[str, ...]] = Counter()
    for name in _COUNTED:
        flat[name,] = counts.get(name, 0)
    for service, errors in counts.get("errors", {}).items():
        flat["errors", service] = errors
    for task, count in counts.get("started", {}).items():
        flat["started", task] = count
    for task, outcomes in counts.get("ended", {}).items():
        for outcome, count in outcomes.items():
            flat["ended", task, outcome] = count
    return flat


def _counters(page: Page, counted: Mapping[tuple[str, ...], int]) -> None:
    for name, metric in _COUNTED.items():
        page.put(metric, counted.get((name,), 0))
    labelled = {
        "errors": table.WORKER_ERRORS,
        "started": table.WORKER_JOBS_STARTED,
        "ended": table.WORKER_JOBS_ENDED,
    }
    for (name, *labels), count in sorted(counted.items()):
        if name in labelled:
            page.put(labelled[name], count, *labels)
