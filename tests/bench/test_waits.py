"""Points of waits."""

from __future__ import annotations

import pytest

from bench.speed.waits import Waits, beside
from bench.witness import Stalls


def test_points_are_of_the_sorted_waits_in_milliseconds() -> None:
    waits = Waits.of((10.0, 10.0 + n / 1000) for n in range(100, 0, -1))
    points = (waits.p50, waits.p95, waits.p99, waits.worst)
    assert waits.count == 100
    assert [round(point) for point in points] == [51, 96, 100, 100]


def test_one_wait_is_all_its_points() -> None:
    waits = Waits.of([(1.0, 1.5)])
    assert (waits.p50, waits.p95, waits.p99, waits.worst) == (500.0,) * 4


def test_no_waits_are_refused() -> None:
    with pytest.raises(AssertionError, match="nothing waited"):
        Waits.of([])


def test_what_a_stall_reached_into_is_left_out() -> None:
    stalls = Stalls()
    stalls.spans = [(5.0, 6.0)]
    calm = beside([(1.0, 1.1), (5.9, 7.0), (6.5, 6.6)], stalls)
    assert calm is not None
    assert calm.count == 2
    assert beside([(5.1, 5.2)], stalls) is None
