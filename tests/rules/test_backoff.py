"""How long a failed attempt waits: doubling to a cap, and a little chance on top."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure._rules.lifecycle import delay
from tenure.config import Backoff

SECOND = timedelta(seconds=1)
chances = st.floats(0, 1, exclude_max=True)
attempts = st.integers(1, 32_767)
policies = st.builds(
    Backoff,
    base=st.timedeltas(timedelta(0), timedelta(days=1)),
    cap=st.timedeltas(timedelta(0), timedelta(days=365)),
    jitter=st.floats(0, 1),
)


@pytest.mark.parametrize(
    ("attempt", "seconds"),
    [(1, 30), (2, 60), (3, 120), (7, 1920), (8, 3600), (9, 3600), (32_767, 3600)],
)
def test_the_wait_doubles_from_thirty_seconds_to_an_hour(attempt: int, seconds: int) -> None:
    """Shows R14."""
    assert delay(Backoff(), attempt=attempt, chance=0) == seconds * SECOND


@given(attempts, chances)
def test_chance_adds_a_fifth_at_most_and_takes_nothing(attempt: int, chance: float) -> None:
    """Shows R14."""
    plain = delay(Backoff(), attempt=attempt, chance=0)
    assert plain <= delay(Backoff(), attempt=attempt, chance=chance) <= plain * 1.2


@given(policies, attempts, chances)
def test_the_wait_is_never_longer_than_the_cap_and_its_jitter(
    policy: Backoff, attempt: int, chance: float
) -> None:
    found = delay(policy, attempt=attempt, chance=chance)
    longest = policy.cap.total_seconds() * (1 + policy.jitter)
    assert timedelta(0) <= found <= timedelta(seconds=longest) + timedelta(microseconds=1)


@given(policies, attempts, chances)
def test_the_next_wait_is_never_shorter(policy: Backoff, attempt: int, chance: float) -> None:
    now = delay(policy, attempt=attempt, chance=chance)
    assert now <= delay(policy, attempt=attempt + 1, chance=chance)


@given(policies, attempts)
def test_more_chance_is_never_less_wait(policy: Backoff, attempt: int) -> None:
    waits = [delay(policy, attempt=attempt, chance=tenths / 10) for tenths in range(10)]
    assert waits == sorted(waits)


@given(policies, st.integers(-3, 1), chances)
def test_an_attempt_below_the_first_waits_as_the_first(
    policy: Backoff, attempt: int, chance: float
) -> None:
    first = delay(policy, attempt=1, chance=chance)
    assert delay(policy, attempt=attempt, chance=chance) == first


def test_no_attempt_is_so_late_that_doubling_overflows() -> None:
    policy = Backoff(base=timedelta(days=36_500), cap=timedelta(days=36_500))
    assert delay(policy, attempt=10**9, chance=0) == policy.cap
