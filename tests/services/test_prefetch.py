"""How much may be claimed ahead: what starts within a moment, by the recent rate."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure._rules import claiming
from tenure._rules.claiming import MAX_PREFETCH, Rate


@pytest.mark.parametrize(
    ("rate", "ahead"), [(0, 0), (9.9, 0), (10, 1), (99, 9), (2000, 200), (1e9, MAX_PREFETCH)]
)
def test_a_tenth_of_a_seconds_work_may_wait_for_a_slot(rate: float, ahead: int) -> None:
    """Nothing where jobs are long, and never more than a batch."""
    assert claiming.prefetch_limit(rate) == ahead


@pytest.mark.parametrize(("ahead", "left"), [(0, 0), (1, 0), (200, 100), (500, 250), (1000, 750)])
def test_next_claim_starts_at_half_or_when_one_claim_fits(ahead: int, left: int) -> None:
    """So that something always waits to run while a claim is on its way."""
    assert claiming.refill_at(ahead) == left


def test_half_of_the_rate_is_of_the_last_second() -> None:
    rate = Rate()
    rate.note(0, 1000.0)
    rate.note(100, 1001.0)
    assert rate.per_second(1001.0) == 50

    assert rate.per_second(1002.0) == 25


def test_a_rate_of_long_ago_has_faded() -> None:
    rate = Rate()
    rate.note(0, 1000.0)
    rate.note(100_000, 1001.0)

    assert claiming.prefetch_limit(rate.per_second(1030.0)) == 0


@given(
    steps=st.lists(st.tuples(st.integers(0, 1000), st.floats(0, 100, allow_nan=False)), max_size=50)
)
def test_the_rate_is_never_negative_and_never_above_what_happened_at_the_quickest(
    steps: list[tuple[int, float]],
) -> None:
    rate, now = Rate(), 1000.0
    rate.note(0, now)
    for count, passed in steps:
        now += passed
        rate.note(count, now)
        # A stretch is at least a tenth of a second long, whatever happens in it.
        assert 0 <= rate.per_second(now) <= 10 * sum(count for count, _ in steps)
