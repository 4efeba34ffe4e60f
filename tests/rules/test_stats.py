"""What may be asked of the counts per minute."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tenure._rules.stats import MOST_STEPS, span, stats
from tenure.errors import InvalidValue

NOW = datetime(2030, 1, 1, 12, 30, 45, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)


def test_by_default_it_is_the_hour_up_to_the_last_whole_minute() -> None:
    request = span(NOW, None, None, MINUTE)
    assert request.until == NOW.replace(second=0)
    assert request.until - request.since == HOUR
    assert len(list(request.steps())) == 60


def test_range_is_widened_to_whole_minutes() -> None:
    request = span(NOW, NOW - 90 * MINUTE, NOW, MINUTE)
    assert request.since == datetime(2030, 1, 1, 11, 0, tzinfo=UTC)
    assert request.until == datetime(2030, 1, 1, 12, 31, tzinfo=UTC)


def test_the_last_step_may_be_short() -> None:
    steps = list(span(NOW, NOW - 90 * MINUTE, NOW, HOUR).steps())
    assert [until - since for since, until in steps] == [HOUR, 31 * MINUTE]


@pytest.mark.parametrize(
    ("since", "until", "step", "why"),
    [
        (NOW, NOW - HOUR, MINUTE, "since must be before until"),
        (datetime(1, 1, 1, tzinfo=UTC), NOW, HOUR, "within 366 days"),
        (NOW, datetime.max.replace(tzinfo=UTC), HOUR, "within 366 days"),
        (NOW.replace(tzinfo=None), NOW, HOUR, "must have a time zone"),
        (NOW - HOUR, NOW, timedelta(seconds=90), "whole minutes"),
        (NOW - HOUR, NOW, timedelta(0), "whole minutes"),
        (NOW - HOUR, NOW, timedelta.max, "whole minutes"),
        (NOW - (MOST_STEPS + 1) * MINUTE, NOW, MINUTE, "longer steps"),
    ],
)
def test_what_cannot_be_is_refused(
    since: datetime, until: datetime, step: timedelta, why: str
) -> None:
    with pytest.raises(InvalidValue, match=why):
        span(NOW, since, until, step)


def test_a_step_in_which_nothing_ended_is_there_with_zeros() -> None:
    found = stats(span(NOW, None, None, 30 * MINUTE), [], None)
    assert len(found.steps) == 2
    assert set(found.whole.outcomes.values()) == {0}
    assert (found.whole.wait.count, found.whole.run.p95) == (0, None)
