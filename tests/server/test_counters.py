"""Counters from counts per minute: they grow only, and have a bounded number of labels."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tenure.admin import BOUNDS
from tenure.server.metrics.collector import OTHERS, CounterTable
from tenure.types import AttemptOutcome, DurationStats, Total, Totals

AT = datetime(2030, 1, 1, tzinfo=UTC)


def total(queue: str, completed: int) -> Total:
    buckets = (completed, *[0] * len(BOUNDS))
    spread = DurationStats(completed, timedelta(seconds=completed), buckets, None, None, None)
    return Total(
        queue,
        "task",
        {**dict.fromkeys(AttemptOutcome, 0), AttemptOutcome.COMPLETED: completed},
        spread,
        spread,
    )


def totals(settled: list[Total], being: list[Total]) -> Totals:
    return Totals(AT, settled, being, timedelta(0))


def shown(counters: CounterTable) -> dict[str, int]:
    return {pair[0]: counted.outcomes[AttemptOutcome.COMPLETED] for pair, counted in counters}


def begun(*queues: str, most: int = 10) -> CounterTable:
    counters = CounterTable(most=most)
    counters.add(totals([total(queue, 7) for queue in queues], []))
    return counters


def test_what_ended_before_the_process_began_is_not_counted_but_begins_at_zero() -> None:
    assert shown(begun("a")) == {"a": 0}


def test_settled_minutes_are_added_once_and_open_ones_each_time() -> None:
    """Shows R37."""
    counters = begun("a")
    counters.add(totals([], [total("a", 3)]))
    assert shown(counters) == {"a": 3}
    counters.add(totals([], [total("a", 4)]))
    assert shown(counters) == {"a": 4}
    counters.add(totals([total("a", 4)], [total("a", 2)]))
    assert shown(counters) == {"a": 6}
    [(_, counted)] = counters
    assert (counted.wait_sum, counted.waits[0]) == (6, 6)


def test_a_counter_never_falls() -> None:
    counters = begun("a")
    counters.add(totals([], [total("a", 5)]))
    counters.add(totals([], []))
    assert shown(counters) == {"a": 5}


def test_labels_beyond_the_limit_are_counted_together() -> None:
    counters = begun("a", most=2)
    counters.add(totals([], [total(queue, 1) for queue in "abcd"]))
    assert shown(counters) == {"a": 1, "b": 1, OTHERS[0]: 2}
    assert counters.cut == 2
    counters.add(totals([], [total(queue, 2) for queue in "dcba"]))
    assert shown(counters) == {"a": 2, "b": 2, OTHERS[0]: 4}
