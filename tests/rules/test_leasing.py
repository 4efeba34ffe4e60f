"""When a holder must stop by itself, and which leases are long enough to be granted."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure._rules.leasing import check_ttl, lease_times, margin, trusted_extension
from tenure.config import DEFAULTS, LONGEST_LEASE
from tenure.errors import InvalidValue

SECOND = timedelta(seconds=1)
NONE = timedelta(0)
ttls = st.timedeltas(timedelta(0), LONGEST_LEASE)
instants = st.floats(0, 1e9)
stops = st.timedeltas(timedelta(0), timedelta(minutes=10))


def acceptable(ttl: timedelta, stop_within: timedelta) -> bool:
    try:
        check_ttl(ttl, stop_within=stop_within)
    except InvalidValue:
        return False
    return True


@given(ttls, stops, instants)
def test_holder_stops_before_its_requested_lease_can_end(
    ttl: timedelta, stop_within: timedelta, sent_at: float
) -> None:
    """The store grants from a later instant than the one at which it was asked."""
    until = sent_at + lease_times(ttl, stop_within=stop_within).trusted_for
    ends_at = sent_at + ttl.total_seconds()
    granted = lease_times(ttl, stop_within=stop_within)
    assert until <= ends_at
    assert ends_at - until >= margin(ttl, stop_within=NONE).total_seconds() - 1e-6
    assert ends_at - until >= granted.stop_within - 1e-6
    if acceptable(ttl, stop_within):
        assert granted.stop_within == stop_within.total_seconds()


@given(ttls, stops, instants, st.floats(0, 3600))
def test_an_answer_that_took_long_is_trusted_no_longer(
    ttl: timedelta, stop_within: timedelta, sent_at: float, round_trip: float
) -> None:
    """What is left of the trust when the answer is here shrinks by all of the round trip."""
    until = sent_at + lease_times(ttl, stop_within=stop_within).trusted_for
    left_at_once = until - sent_at
    left_after = until - (sent_at + round_trip)
    assert left_after == pytest.approx(left_at_once - round_trip, abs=1e-5)


@given(ttls, stops)
def test_the_margin_is_a_tenth_of_the_lease_but_at_least_a_second(
    ttl: timedelta, stop_within: timedelta
) -> None:
    assert margin(ttl, stop_within=stop_within) == max(SECOND, ttl / 10) + stop_within


@given(ttls, ttls, stops)
def test_an_extended_lease_keeps_the_margin_of_a_lease_of_its_length(
    ttl: timedelta, more: timedelta, stop_within: timedelta
) -> None:
    """Rule 6 holds for an extension too, and its handler gets as much time to stop."""
    extend = ttl + more
    times = lease_times(ttl, stop_within=stop_within)
    trusted = trusted_extension(times, ttl, extend)
    left = extend.total_seconds() - trusted - times.stop_within

    assert left == pytest.approx(margin(extend, stop_within=NONE).total_seconds(), abs=1e-3)
    assert trusted >= times.trusted_for - 1e-3


def test_the_default_lease_is_trusted_for_twenty_five_seconds_and_renewed_after_ten() -> None:
    """Shows R3."""
    default = lease_times(DEFAULTS.lease, stop_within=DEFAULTS.stop_within)
    assert (default.trusted_for, default.renew_after, default.stop_within) == (25.0, 10.0, 2.0)


@given(st.timedeltas(3 * SECOND, 20 * SECOND), stops)
def test_a_lease_shorter_than_its_task_thought_leaves_time_for_a_second_renewal_too(
    ttl: timedelta, stop_within: timedelta
) -> None:
    """The time to stop gives way. Shows R3."""
    if acceptable(ttl, NONE):
        granted = lease_times(ttl, stop_within=stop_within)
        assert (
            granted.trusted_for - granted.renew_after
            > DEFAULTS.renewal_window.total_seconds() - 1e-5
        )


@given(ttls, stops)
def test_a_lease_that_is_accepted_has_time_for_a_second_renewal_before_its_holder_stops(
    ttl: timedelta, stop_within: timedelta
) -> None:
    """Shows R3."""
    if acceptable(ttl, stop_within):
        granted = lease_times(ttl, stop_within=stop_within)
        assert granted.renew_after < granted.trusted_for
        assert (
            granted.trusted_for - granted.renew_after
            > DEFAULTS.renewal_window.total_seconds() - 1e-5
        )


@given(ttls, stops, stops)
def test_a_handler_that_stops_faster_never_needs_a_longer_lease(
    ttl: timedelta, stop_within: timedelta, faster_by: timedelta
) -> None:
    if acceptable(ttl, stop_within):
        assert acceptable(ttl, max(timedelta(0), stop_within - faster_by))


@pytest.mark.parametrize(("ttl", "fits"), [(6, False), (6.01, True), (30, True), (86_400, True)])
def test_the_shortest_lease_leaves_two_thirds_for_its_margins(ttl: float, fits: bool) -> None:
    assert acceptable(timedelta(seconds=ttl), DEFAULTS.stop_within) is fits


def test_a_lease_that_is_too_short_is_refused_with_what_to_do() -> None:
    with pytest.raises(InvalidValue) as refused:
        check_ttl(timedelta(seconds=5))
    assert str(refused.value) == (
        "lease must be longer, got 5 s: two thirds of it must exceed 4 s (its margin, stop_within "
        "and a second to spare); choose a longer lease or a shorter stop_within"
    )


@pytest.mark.parametrize("ttl", [timedelta(0), -SECOND, -LONGEST_LEASE])
def test_a_lease_of_no_time_is_refused(ttl: timedelta) -> None:
    with pytest.raises(InvalidValue, match="lease must be longer"):
        check_ttl(ttl, stop_within=timedelta(0))


@pytest.mark.parametrize("ttl", [LONGEST_LEASE + timedelta(microseconds=1), timedelta.max])
def test_a_lease_that_is_too_long_is_refused_with_what_to_do(ttl: timedelta) -> None:
    with pytest.raises(InvalidValue, match=r"at most 1 day.*; a long job keeps a short lease"):
        check_ttl(ttl)


@given(st.integers(1, 3600), st.sampled_from([0.5, 0.1, 0.02, 0.01]))
def test_scaled_constants_judge_scaled_leases_as_the_real_ones_judge_real_leases(
    seconds: int, factor: float
) -> None:
    scaled = DEFAULTS.scaled(factor)
    # Away from the edge, where rounding to microseconds decides.
    ttl = timedelta(seconds=seconds) + timedelta(milliseconds=500)
    small = ttl * factor
    real = acceptable(ttl, DEFAULTS.stop_within)
    try:
        check_ttl(small, stop_within=scaled.stop_within, defaults=scaled)
    except InvalidValue:
        assert not real
    else:
        assert real
    kept = lease_times(small, stop_within=scaled.stop_within, defaults=scaled)
    full = lease_times(ttl, stop_within=DEFAULTS.stop_within)
    assert kept.trusted_for == pytest.approx(full.trusted_for * factor, abs=1e-4)


def test_scaling_leaves_settings_outside_the_lease_protocol() -> None:
    scaled = DEFAULTS.scaled(0.01)
    assert scaled.lease == timedelta(milliseconds=300)
    assert scaled.late_commit_window == timedelta(milliseconds=20)
    assert (scaled.max_attempts, scaled.max_losses) == (3, 3)
    assert scaled.backoff == DEFAULTS.backoff
    assert scaled.keep_failed == DEFAULTS.keep_failed
