"""Cron ticks where clocks change. docs/decisions/0008-cron-and-clock-changes.md has the rules."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from tenure._model.schedule import Timing
from tenure._rules.cron import moved, shift_on
from tenure._rules.timing import between, following, last, upcoming

BERLIN = "Europe/Berlin"
LORD_HOWE = "Australia/Lord_Howe"  # by half an hour, at 02:00
HAVANA = "America/Havana"  # at midnight: 00:00 is left out, 00:00 to 01:00 comes twice
BEIRUT = "Asia/Beirut"  # set back at midnight to 23:00 of the day before
APIA = "Pacific/Apia"  # has no 30 December 2011


def ticks(expression: str, zone: str, day: str, *, days: int = 1) -> list[str]:
    """The ticks from a day's begin to its end, as the zone's clock shows them with its offset."""
    there = ZoneInfo(zone)
    begin = datetime.fromisoformat(day).replace(tzinfo=there)
    end = (begin + timedelta(days=days)).replace(fold=1)
    second = timedelta(seconds=1)
    timing = Timing(cron=expression, zone=zone)
    found = between(timing, begin.astimezone(UTC) - second, end.astimezone(UTC) - second)
    return [f"{tick.astimezone(there):%d. %H:%M%z}" for tick in found]


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("30 2 * * *", ["29. 03:00+0200"]),
        ("0 2 * * *", ["29. 03:00+0200"]),
        ("59 2 * * *", ["29. 03:00+0200"]),
        ("30 1 * * *", ["29. 01:30+0100"]),
        ("30 2 29 3 *", ["29. 03:00+0200"]),
    ],
)
def test_a_fixed_time_inside_a_gap_fires_once_at_its_end(expression: str, found: list[str]) -> None:
    """R-gap. Shows R25."""
    assert ticks(expression, BERLIN, "2026-03-29") == found


def test_several_fixed_times_inside_a_gap_are_one_tick_also_with_one_at_its_end() -> None:
    """R-gap. Shows R25."""
    assert ticks("0,20,40 2,3 * * *", BERLIN, "2026-03-29") == [
        "29. 03:00+0200",
        "29. 03:20+0200",
        "29. 03:40+0200",
    ]


def test_a_fixed_time_that_comes_twice_fires_at_the_first_pass() -> None:
    """R-overlap. Shows R25."""
    assert ticks("30 2 * * *", BERLIN, "2026-10-25") == ["25. 02:30+0200"]
    assert ticks("0,30 1-3 * * *", BERLIN, "2026-10-25") == [
        "25. 01:00+0200",
        "25. 01:30+0200",
        "25. 02:00+0200",
        "25. 02:30+0200",
        "25. 03:00+0100",
        "25. 03:30+0100",
    ]


def test_interval_continues_through_both_folds_and_skips_the_gap() -> None:
    """R-rhythm. Shows R25."""
    hourly = Timing(cron="0 * * * *", zone=BERLIN)
    for begin in (datetime(2026, 3, 28, 20, tzinfo=UTC), datetime(2026, 10, 24, 20, tzinfo=UTC)):
        found = upcoming(hourly, begin, 12)
        assert {b - a for a, b in pairwise(found)} == {timedelta(hours=1)}
    assert ticks("*/30 2 * * *", BERLIN, "2026-10-25") == [
        "25. 02:00+0200",
        "25. 02:30+0200",
        "25. 02:00+0100",
        "25. 02:30+0100",
    ]
    assert ticks("*/30 2 * * *", BERLIN, "2026-03-29") == []


def test_an_interval_does_not_know_of_clocks() -> None:
    """Shows R25."""
    found = upcoming(Timing(every=timedelta(hours=1)), datetime(2026, 3, 28, 20, tzinfo=UTC), 12)
    assert {b - a for a, b in pairwise(found)} == {timedelta(hours=1)}


def test_from_inside_the_second_pass_nothing_of_the_first_is_answered() -> None:
    fixed = Timing(cron="0,30 2,3 * * *", zone=BERLIN)
    inside = datetime(2026, 10, 25, 1, 15, tzinfo=UTC)  # 02:15 for the second time
    assert following(fixed, inside) == datetime(2026, 10, 25, 2, tzinfo=UTC)
    assert last(fixed, inside) == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("expression", "day", "found"),
    [
        ("15 2 * * *", "2026-10-04", ["04. 02:30+1100"]),
        ("*/15 2 * * *", "2026-10-04", ["04. 02:30+1100", "04. 02:45+1100"]),
        ("45 1 * * *", "2026-04-05", ["05. 01:45+1100"]),
        ("45 */13 * * *", "2026-04-05", ["05. 00:45+1100", "05. 13:45+1030"]),
        ("*/45 1 * * *", "2026-04-05", ["05. 01:00+1100", "05. 01:45+1100", "05. 01:45+1030"]),
    ],
)
def test_a_change_by_half_an_hour_follows_the_same_rules(
    expression: str, day: str, found: list[str]
) -> None:
    """Shows R25."""
    assert ticks(expression, LORD_HOWE, day) == found


@pytest.mark.parametrize(
    ("expression", "zone", "day", "found"),
    [
        ("0 0 * * *", HAVANA, "2026-03-08", ["08. 01:00-0400"]),
        ("30 0 * * *", HAVANA, "2026-11-01", ["01. 00:30-0400"]),
        ("*/40 0 * * *", HAVANA, "2026-03-08", []),
        ("*/60 0 * * *", HAVANA, "2026-11-01", ["01. 00:00-0400", "01. 00:00-0500"]),
        ("0 0 * * *", BEIRUT, "2026-03-29", ["29. 01:00+0300"]),
        ("30 23 * * *", BEIRUT, "2026-10-24", ["24. 23:30+0300"]),
        ("*/60 23 24 * *", BEIRUT, "2026-10-24", ["24. 23:00+0300", "24. 23:00+0200"]),
        ("0 0 25 10 *", BEIRUT, "2026-10-25", ["25. 00:00+0200"]),
    ],
)
def test_a_change_at_midnight_follows_the_same_rules(
    expression: str, zone: str, day: str, found: list[str]
) -> None:
    """Shows R25."""
    assert ticks(expression, zone, day) == found


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("0 12 30 12 *", ["31. 00:00+1400"]),
        ("0 0 * * *", ["29. 00:00-1000", "31. 00:00+1400"]),
        ("0 */12 * * *", ["29. 00:00-1000", "29. 12:00-1000", "31. 00:00+1400", "31. 12:00+1400"]),
        ("* 12 30 12 *", []),
    ],
)
def test_a_day_that_a_zone_left_out_is_a_gap_as_any_other(
    expression: str, found: list[str]
) -> None:
    """Shows R25."""
    assert ticks(expression, APIA, "2011-12-29", days=3) == found


def test_day_of_a_clock_change_is_explained() -> None:
    """Shows R25."""
    gap = shift_on(BERLIN, datetime(2026, 3, 29, 15, tzinfo=UTC))
    assert gap is not None
    assert gap.at == datetime(2026, 3, 29, 1, tzinfo=UTC)
    assert f"{gap.shown:%H:%M} {gap.becomes:%H:%M}" == "02:00 03:00"
    assert gap.is_gap
    assert gap.by == timedelta(hours=1)
    overlap = shift_on(BERLIN, datetime(2026, 10, 25, 0, 30, tzinfo=UTC))
    assert overlap is not None
    assert f"{overlap.shown:%H:%M} {overlap.becomes:%H:%M}" == "03:00 02:00"
    assert not overlap.is_gap
    assert overlap.by == timedelta(hours=-1)


@pytest.mark.parametrize(
    ("zone", "days"),
    [
        (BERLIN, ["2026-03-29", "2026-10-25"]),
        (LORD_HOWE, ["2026-04-05", "2026-10-04"]),
        (HAVANA, ["2026-03-08", "2026-11-01"]),
        (BEIRUT, ["2026-03-29", "2026-10-24"]),
        ("UTC", []),
        ("Asia/Tokyo", []),
    ],
)
def test_year_lists_only_the_days_of_clock_changes(zone: str, days: list[str]) -> None:
    there = ZoneInfo(zone)
    noons = [datetime(2026, 1, 1, 12, tzinfo=there) + timedelta(days=n) for n in range(365)]
    assert [str(noon.date()) for noon in noons if shift_on(zone, noon)] == days


def test_tick_in_a_gap_is_shown_as_moved() -> None:
    """Shows R25."""
    change = datetime(2026, 3, 29, 1, tzinfo=UTC)
    assert moved(Timing(cron="30 2 * * *", zone=BERLIN), change)
    assert not moved(Timing(cron="0 3 * * *", zone=BERLIN), change)
    assert not moved(
        Timing(cron="30 2 * * *", zone=BERLIN), datetime(2026, 3, 30, 0, 30, tzinfo=UTC)
    )
    assert not moved(Timing(every=timedelta(hours=1)), change)
