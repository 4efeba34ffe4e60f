"""What is told from durations that were counted in buckets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure._rules.stats import BOUNDS, BUCKETS, added, quantile

counts = st.lists(st.integers(0, 10_000), min_size=BUCKETS, max_size=BUCKETS)


def buckets(**by_place: int) -> list[int]:
    return [by_place.get(f"b{place}", 0) for place in range(BUCKETS)]


def test_the_bounds_are_what_is_stored_and_never_change() -> None:
    assert (
        *(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5),
        *(10, 30, 60, 120, 300, 600, 1800, 3600),
    ) == BOUNDS


def test_nothing_counted_has_no_quantile() -> None:
    assert quantile(buckets(), 0.5) is None


def test_a_quantile_lies_in_its_bucket_as_if_that_were_filled_evenly() -> None:
    assert quantile(buckets(b7=100), 0.5) == pytest.approx(0.75)
    assert quantile(buckets(b0=50, b8=50), 0.99) == pytest.approx(1 + 1.5 * 49 / 50)


def test_beyond_the_last_bound_it_is_that_bound() -> None:
    assert quantile(buckets(b18=3), 0.5) == 3600


@given(counts)
def test_a_higher_share_is_never_below_a_lower_one(given: list[int]) -> None:
    found = [quantile(given, share) for share in (0.5, 0.95, 0.99)]
    if sum(given) == 0:
        assert found == [None, None, None]
    else:
        reported = [value for value in found if value is not None]
        assert len(reported) == 3
        assert reported == sorted(reported)
        assert reported[0] >= 0
        assert reported[-1] <= BOUNDS[-1]


@given(counts, counts)
def test_two_counts_are_one_of_both(one: list[int], other: list[int]) -> None:
    assert sum(added(one, other)) == sum(one) + sum(other)
