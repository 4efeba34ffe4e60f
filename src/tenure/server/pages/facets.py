"""What jobs can be narrowed to, with how many there are: the counts are the filters.

They come from the depths that all who ask share, and from what is on the page: nothing is counted
for them.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tenure.admin import Selector, View, selector_text
from tenure.server.shapes.figures import CountOut, DepthOut
from tenure.server.shapes.jobs import JobOut

_COUNTED: Mapping[View, Callable[[DepthOut], Sequence[CountOut]]] = {
    View.DUE: lambda depth: [depth.due],
    View.QUEUED: lambda depth: [depth.due, depth.later, depth.held],
    View.HELD: lambda depth: [depth.held],
    View.RUNNING: lambda depth: [depth.running],
    View.FAILED: lambda depth: [depth.failed],
}
_ALL = (View.QUEUED, View.RUNNING, View.FAILED)
_MOST_QUEUES = 30
_MOST_TASKS = 15


@dataclass(frozen=True, slots=True)
class Facet:
    """One value to narrow to: how many, where that is known, and the selector that a click makes.
    The one that is chosen already is taken away by it."""

    name: str
    count: CountOut | None
    selector: str
    chosen: bool


def states(meant: Selector, depths: Sequence[DepthOut]) -> list[Facet]:
    """The states, counted in the queues that are chosen."""
    within = [one for one in depths if not meant.queue or one.queue in meant.queue]
    return [
        _facet(
            meant,
            "state",
            view,
            _sum([count for one in within for count in _COUNTED[view](one)])
            if view in _COUNTED
            else None,
        )
        for view in View
    ]


def queues(meant: Selector, depths: Sequence[DepthOut]) -> list[Facet]:
    """The queues, with how many of the chosen states there are in each; the fullest first."""
    views = [view for view in meant.state or _ALL if view in _COUNTED]
    counted = [
        (one.queue, _sum([count for view in views for count in _COUNTED[view](one)]))
        for one in depths
    ]
    counted.sort(key=lambda one: (one[0] not in meant.queue, -one[1].value, one[0]))
    known = views or None
    return [
        _facet(meant, "queue", name, count if known else None)
        for name, count in counted[:_MOST_QUEUES]
    ]


def tasks(meant: Selector, found: Sequence[JobOut]) -> list[Facet]:
    """The tasks of what is on the page."""
    counts = Counter(job.task for job in found)
    names = [*meant.task, *(name for name, _ in counts.most_common() if name not in meant.task)]
    return [
        _facet(meant, "task", name, CountOut(value=counts[name], more=False))
        for name in names[:_MOST_TASKS]
    ]


def _facet(meant: Selector, field: str, value: str, count: CountOut | None) -> Facet:
    chosen = value in getattr(meant, field)
    changed: dict[str, Any] = {"id": (), field: () if chosen else (value,)}
    return Facet(str(value), count, selector_text(replace(meant, **changed)), chosen)


def _sum(counts: Sequence[CountOut]) -> CountOut:
    return CountOut(value=sum(one.value for one in counts), more=any(one.more for one in counts))
