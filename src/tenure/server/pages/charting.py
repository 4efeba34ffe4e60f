"""The three charts of the Overview: what ended, how long it waited, how long the busiest ran."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from tenure.admin import Admin, Ending, Stats, Tally, Totals
from tenure.server.shared import Shared

# How far back, in minutes, and how many of them are one step.
SPANS: Mapping[str, tuple[int, int]] = {
    "15m": (15, 1),
    "1h": (60, 1),
    "6h": (360, 5),
    "24h": (1440, 15),
}
_FRESH, _OLDEST = 5.0, 30.0
_BUSIEST = 5
_COLOURS = ("indigo", "sky", "emerald", "amber", "rose")
_FAILED = (Ending.FAILED, Ending.TIMED_OUT, Ending.LOST)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a chart."""

    name: str
    colour: str
    values: Sequence[float | None]


@dataclass(frozen=True, slots=True)
class Charts:
    """What is drawn over a time, step by step; after `whole_to` it is not all counted yet."""

    steps: Sequence[datetime]
    whole_to: datetime | None
    throughput: Sequence[Line]
    waits: Sequence[Line]
    runs: Sequence[Line]


def shared(admin: Admin) -> Mapping[str, Shared[Charts]]:
    """The charts by how far back they go, each asked for once for all who look."""
    return {
        name: Shared(partial(_ask, admin, name), fresh=_FRESH, oldest=_OLDEST) for name in SPANS
    }


async def _ask(admin: Admin, name: str) -> Charts:
    back, size = SPANS[name]
    step = timedelta(minutes=size)
    whole = await admin.astats(step=step) if back == 60 else None
    now = (whole or await admin.astats()).whole.until
    since = now - timedelta(minutes=back)
    if whole is None:
        whole = await admin.astats(since=since, until=now, step=step)
    busiest = _busiest(await admin.atotals(max(since, now - timedelta(hours=1))))
    runs = [await admin.astats(task=task, since=since, until=now, step=step) for task in busiest]
    return _charts(whole, dict(zip(busiest, runs, strict=True)))


def _busiest(totals: Totals) -> list[str]:
    """The tasks that ran longest in all."""
    spent: dict[str, timedelta] = {}
    for one in (*totals.settled, *totals.open):
        if one.task:
            spent[one.task] = spent.get(one.task, timedelta(0)) + one.run.sum
    return sorted(spent, key=lambda task: -spent[task])[:_BUSIEST]


def _charts(whole: Stats, tasks: Mapping[str, Stats]) -> Charts:
    steps = whole.steps

    def line(name: str, colour: str, values: Sequence[float | None]) -> Line:
        return Line(name, colour, values)

    def ended(*how: Ending) -> list[float | None]:
        """Nothing where nothing is counted yet: it would look like an outage."""
        to = whole.folded_to
        return [
            sum(one.outcomes[each] for each in how) if to is None or one.since < to else None
            for one in steps
        ]

    return Charts(
        steps=[one.since for one in steps],
        whole_to=whole.folded_to,
        throughput=[
            line("completed", "emerald", ended(Ending.COMPLETED)),
            line("failed", "rose", ended(*_FAILED)),
        ],
        waits=[
            line(name, colour, [_seconds(getattr(one.wait, name)) for one in steps])
            for name, colour in (("p50", "emerald"), ("p95", "sky"), ("p99", "amber"))
        ],
        runs=[
            line(task, colour, [_p95(one) for one in stats.steps])
            for (task, stats), colour in zip(tasks.items(), _COLOURS, strict=False)
        ],
    )


def _p95(tally: Tally) -> float | None:
    return _seconds(tally.run.p95)


def _seconds(value: timedelta | None) -> float | None:
    return None if value is None else value.total_seconds()
