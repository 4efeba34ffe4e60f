"""Charts and sparklines."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from tenure.admin import Admin
from tenure.server.cache import SingleFlightCache
from tenure.types import AttemptOutcome, Stats, StatsBucket, Totals

_STEP = 3
HEIGHT = 20


@dataclass(frozen=True, slots=True)
class Spark:
    """A sparkline with one bar per step: all attempts, and those that failed."""

    width: int
    ended: str
    failed: str


def spark(completed: Sequence[int], failed: Sequence[int]) -> Spark:
    """Draw a queue's throughput."""
    totals = [done + bad for done, bad in zip(completed, failed, strict=True)]
    most = max(totals, default=0) or 1
    return Spark(len(totals) * _STEP, _bars(totals, most), _bars(failed, most))


def failures(hours: Sequence[int]) -> Spark:
    """Draw failures only."""
    return spark([0] * len(hours), hours)


def _bars(values: Sequence[int], most: int) -> str:
    return "".join(
        f"M{nth * _STEP} {HEIGHT}v-{max(1, round(HEIGHT * value / most))}h{_STEP - 1}V{HEIGHT}z"
        for nth, value in enumerate(values)
        if value
    )


# Each chart's time range and step, in minutes.
SPANS: Mapping[str, tuple[int, int]] = {
    "15m": (15, 1),
    "1h": (60, 1),
    "6h": (360, 5),
    "24h": (1440, 15),
}
_FRESH, _OLDEST = 5.0, 30.0
_BUSIEST = 5
_COLOURS = ("indigo", "sky", "emerald", "amber", "rose")
_FAILED = (AttemptOutcome.FAILED, AttemptOutcome.TIMED_OUT, AttemptOutcome.LOST)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a chart."""

    name: str
    colour: str
    values: Sequence[float | None]


@dataclass(frozen=True, slots=True)
class Charts:
    """The values of the charts' lines per step. Counts after `whole_to` aren't complete yet."""

    steps: Sequence[datetime]
    whole_to: datetime | None
    throughput: Sequence[Line]
    waits: Sequence[Line]
    runs: Sequence[Line]


def shared(admin: Admin) -> Mapping[str, SingleFlightCache[Charts]]:
    """Create the charts by time range, each with a cache shared by all visitors."""
    return {
        name: SingleFlightCache(partial(_ask, admin, name), fresh=_FRESH, oldest=_OLDEST)
        for name in SPANS
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
    """Return the tasks with the highest total run time."""
    spent: dict[str, timedelta] = {}
    for one in (*totals.settled, *totals.open):
        if one.task:
            spent[one.task] = spent.get(one.task, timedelta(0)) + one.run.sum
    return sorted(spent, key=lambda task: -spent[task])[:_BUSIEST]


def _charts(whole: Stats, tasks: Mapping[str, Stats]) -> Charts:
    steps = whole.steps

    def line(name: str, colour: str, values: Sequence[float | None]) -> Line:
        return Line(name, colour, values)

    def ended(*how: AttemptOutcome) -> list[float | None]:
        """Return None if nothing is counted yet, because a zero would look like an outage."""
        to = whole.counted_until
        return [
            sum(one.outcomes[each] for each in how) if to is None or one.since < to else None
            for one in steps
        ]

    return Charts(
        steps=[one.since for one in steps],
        whole_to=whole.counted_until,
        throughput=[
            line("completed", "emerald", ended(AttemptOutcome.COMPLETED)),
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


def _p95(tally: StatsBucket) -> float | None:
    return _seconds(tally.run.p95)


def _seconds(value: timedelta | None) -> float | None:
    return None if value is None else value.total_seconds()
