"""When a schedule's ticks are: cron expressions, intervals, one instant. Clock changes apart."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from proof.schedules.oracle import EXPRESSIONS
from tenure._model.schedule import Timing
from tenure._rules.timing import between, check, following, last, upcoming
from tenure.config import LONGEST_WAIT
from tenure.errors import InvalidValue

if TYPE_CHECKING:
    from collections.abc import Sequence

NOW = datetime(2026, 7, 1, 15, 37, 12, 345_678, tzinfo=UTC)
ZONES = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "America/Havana",
    "Antarctica/Troll",
    "Asia/Kathmandu",
    "Pacific/Apia",
    "Africa/Casablanca",
]

NAIVE = NOW.replace(tzinfo=None)
FIRST, LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
CHANGES = [  # of clocks, in the zones above
    datetime(2026, 3, 29, 1, tzinfo=UTC),
    datetime(2026, 10, 25, 1, tzinfo=UTC),
    datetime(2026, 3, 8, 7, tzinfo=UTC),
    datetime(2026, 4, 4, 15, tzinfo=UTC),
    datetime(2026, 11, 1, 5, tzinfo=UTC),
    datetime(2011, 12, 30, 10, tzinfo=UTC),
]
anywhere = st.datetimes(
    NAIVE.replace(1975),
    NAIVE.replace(2100),
    timezones=st.sampled_from([UTC, ZoneInfo("Asia/Tokyo")]),
)
near = st.builds(
    lambda at, by: at + by,
    st.sampled_from(CHANGES),
    st.timedeltas(timedelta(hours=-4), timedelta(hours=4)),
)
instants = anywhere | near
crons = st.builds(
    lambda cron, zone: Timing(cron=cron, zone=zone),
    st.sampled_from(EXPRESSIONS),
    st.sampled_from(ZONES),
)
intervals = st.builds(
    lambda every: Timing(every=every), st.timedeltas(timedelta(seconds=1), timedelta(days=400))
)
moments = st.builds(lambda at: Timing(at=at), instants)
timings = crons | intervals | moments


def cron(expression: str, zone: str = "UTC") -> Timing:
    return Timing(cron=expression, zone=zone)


def refusal(timing: Timing) -> str:
    with pytest.raises(InvalidValue) as refused:
        check(timing)
    return str(refused.value)


def shown(ticks: Sequence[datetime]) -> list[str]:
    return [f"{tick:%m-%d %H:%M}" for tick in ticks]


@pytest.mark.parametrize(
    ("expression", "ticks"),
    [
        ("*/20 * * * *", ["07-01 15:40", "07-01 16:00", "07-01 16:20"]),
        ("0 3 * * *", ["07-02 03:00", "07-03 03:00", "07-04 03:00"]),
        ("0 9 * * MON-FRI", ["07-02 09:00", "07-03 09:00", "07-06 09:00"]),
        ("0 9 * * mon,Fri", ["07-03 09:00", "07-06 09:00", "07-10 09:00"]),
        ("0 0 L * *", ["07-31 00:00", "08-31 00:00", "09-30 00:00"]),
        ("0 0 LW * *", ["07-31 00:00", "08-31 00:00", "09-30 00:00"]),
        ("0 0 * * 5L", ["07-31 00:00", "08-28 00:00", "09-25 00:00"]),
        ("0 0 * * TUE#2", ["07-14 00:00", "08-11 00:00", "09-08 00:00"]),
        ("0 0 13 * FRI", ["07-03 00:00", "07-10 00:00", "07-13 00:00"]),
        ("0 0 1 JAN,APR *", ["01-01 00:00", "04-01 00:00", "01-01 00:00"]),
        ("@hourly", ["07-01 16:00", "07-01 17:00", "07-01 18:00"]),
        ("@daily", ["07-02 00:00", "07-03 00:00", "07-04 00:00"]),
        ("@midnight", ["07-02 00:00", "07-03 00:00", "07-04 00:00"]),
        ("@weekly", ["07-05 00:00", "07-12 00:00", "07-19 00:00"]),
        ("@Monthly", ["08-01 00:00", "09-01 00:00", "10-01 00:00"]),
        ("@yearly", ["01-01 00:00", "01-01 00:00", "01-01 00:00"]),
        ("@annually", ["01-01 00:00", "01-01 00:00", "01-01 00:00"]),
    ],
)
def test_a_cron_expression_has_the_ticks_that_it_says(expression: str, ticks: list[str]) -> None:
    """Shows R24."""
    check(cron(expression))
    assert shown(upcoming(cron(expression), NOW, 3)) == ticks


def test_a_cron_expression_is_read_in_its_zone_and_answered_in_utc() -> None:
    """Shows R25."""
    found = upcoming(cron("0 9 * * *", "America/New_York"), NOW, 1)
    assert found == [datetime(2026, 7, 2, 13, tzinfo=UTC)]
    assert found[0].tzinfo is UTC


def test_what_comes_once_in_eight_years_is_found_both_ways() -> None:
    leap = cron("0 0 29 2 *")
    assert following(leap, datetime(2097, 1, 1, tzinfo=UTC)) == datetime(2104, 2, 29, tzinfo=UTC)
    assert last(leap, datetime(2103, 1, 1, tzinfo=UTC)) == datetime(2096, 2, 29, tzinfo=UTC)


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Pacific/Niue", "America/New_York", "UTC"])
@pytest.mark.parametrize("expression", ["30 23 5 * *", "30 0 5 * *", "*/30 23 5 * *"])
def test_a_day_of_the_month_is_the_zones_however_far_it_is_from_utc(
    expression: str, zone: str
) -> None:
    """Shows R25."""
    timing = cron(expression, zone)
    [tick, *_] = upcoming(timing, datetime(2026, 7, 1, tzinfo=UTC), 1)
    assert tick.astimezone(ZoneInfo(zone)).day == 5
    for hours in range(1, 96):
        assert following(timing, tick - timedelta(hours=hours)) == tick
        before = last(timing, tick + timedelta(hours=hours))
        assert before is not None
        assert tick <= before < tick + timedelta(hours=1)


def test_an_interval_counts_from_1970_whenever_it_was_made() -> None:
    """Shows R24."""
    every = Timing(every=timedelta(hours=7))
    check(every)
    assert following(every, datetime(1970, 1, 1, tzinfo=UTC)) == datetime(1970, 1, 1, 7, tzinfo=UTC)
    found = upcoming(every, NOW, 3)
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    assert all((tick - epoch) % timedelta(hours=7) == timedelta(0) for tick in found)
    assert found[0] - NOW <= timedelta(hours=7)


def test_one_instant_is_one_tick() -> None:
    """Shows R24."""
    at = datetime(2026, 7, 1, 18, tzinfo=ZoneInfo("Europe/Berlin"))
    once = Timing(at=at, zone="Europe/Berlin")
    check(once)
    tick = datetime(2026, 7, 1, 16, tzinfo=UTC)
    assert upcoming(once, NOW, 5) == [tick]
    assert following(once, tick) is None
    assert last(once, tick) == tick
    assert last(once, tick - timedelta(microseconds=1)) is None


@pytest.mark.parametrize(
    ("timing", "given"),
    [
        (Timing(), "give one of cron="),
        (Timing(cron="@daily", every=timedelta(1)), "got cron and every"),
        (Timing(every=timedelta(1), at=NOW), "got every and at"),
        (cron(""), "cron must have five fields (minute, hour, "),
        (cron("* * * *"), "got 4: "),
        (cron("0 * * * * *"), "for ticks closer than a minute write every="),
        (cron("@reboot"), "where your program starts"),
        (cron("@often"), "nickname must be one of @yearly, "),
        (cron("61 * * * *"), "'61' is not a valid minute; write * or 0 to 59"),
        (cron("* 24 * * *"), "'24' is not a valid hour; write * or 0 to 23"),
        (cron("* * 0 * *"), "'0' is not a valid day of the month; "),
        (cron("* * * DEZ *"), "'DEZ' is not a valid month; write * or 1 to 12 or JAN to DEC"),
        (
            cron("* * * * FRI-SUN"),
            "'FRI-SUN' is not a valid day of the week; write * or 0 to 7 (0 and 7 ",
        ),
        (cron("1" * 400 + " * * * *"), "is not a valid minute"),
        (cron("1" * 9000 + " * * * *"), "cron must have at most 500 characters, got 9,008"),
        (cron("0 0 30 2 *"), "matches no day in 50 years"),
        (cron("0 0 */40 * MON#2"), "matches no day in 50 years"),
        (Timing(every=timedelta(seconds=0.5)), "every must be at least 1 s"),
        (Timing(every=LONGEST_WAIT * 2), "every must be at most 36,500 days"),
        (Timing(every=timedelta(hours=1), zone="Europe/Berlin"), "got 'Europe/Berlin'; omit it"),
        (Timing(at=NAIVE), "at must have a time zone, got"),
        (Timing(at=NOW, zone="Europe/Nowhere"), "time zone 'Europe/Nowhere' does not exist"),
        (cron("@daily", "europe/berlin"), "write Europe/Berlin"),
        (cron("@daily", "New York"), "write America/New_York"),
        (cron("@daily", "Europe/Berln"), "did you mean Europe/Berlin or"),
        (cron("@daily", "Middle-earth"), "write one such as Europe/Berlin"),
        (cron("@daily", "localtime"), "time zone 'localtime' does not exist"),
        (cron("@daily", "../../etc/passwd"), "time zone '../../etc/passwd' does not exist"),
        (cron("@daily", "America"), "time zone 'America' does not exist"),
        (cron("@daily", ""), "time zone '' does not exist"),
    ],
)
def test_what_names_no_ticks_is_refused_with_what_to_write(timing: Timing, given: str) -> None:
    assert given in refusal(timing)


@given(st.text(max_size=30) | st.text("0123456789*/-,#LW@ ", max_size=30))
def test_any_text_is_either_read_or_refused(text: str) -> None:
    try:
        check(cron(text))
    except InvalidValue:
        return
    assert following(cron(text), NOW) is not None


def test_an_instant_without_a_zone_is_never_read_in_that_of_the_machine() -> None:
    with pytest.raises(InvalidValue, match="must have a time zone"):
        following(cron("@daily"), NAIVE)
    with pytest.raises(InvalidValue, match="must have a time zone"):
        last(cron("@daily"), NAIVE)


@given(timings, instants, st.integers(0, 6))
def test_the_next_ticks_are_each_the_one_that_follows(
    timing: Timing, after: datetime, count: int
) -> None:
    found = upcoming(timing, after, count)
    assert len(found) <= count
    for tick in found:
        assert following(timing, after) == tick > after
        assert tick.tzinfo is UTC
        after = tick


@given(timings, instants)
def test_the_last_tick_up_to_one_is_that_one_and_none_is_between(
    timing: Timing, after: datetime
) -> None:
    tick = following(timing, after)
    assume(tick is not None)
    assert tick is not None
    assert last(timing, tick) == tick
    earlier = last(timing, tick - timedelta(microseconds=1))
    assert earlier is None or (earlier <= after and following(timing, earlier) == tick)


@given(timings, instants, st.timedeltas(timedelta(0), timedelta(days=3)))
def test_a_window_has_the_ticks_that_follow_one_another_in_it(
    timing: Timing, after: datetime, length: timedelta
) -> None:
    if timing.every is not None:
        length = min(length, timing.every * 20)
    until = after + length
    found = list(between(timing, after, until))
    assert found == sorted(set(found))
    assert found == list(upcoming(timing, after, len(found)))
    assert all(after < tick <= until for tick in found)
    rest = following(timing, found[-1] if found else after)
    assert rest is None or rest > until
    assert not found or found[-1] == last(timing, until)


@given(timings, instants, st.timedeltas(timedelta(0), timedelta(days=2)), st.floats(0, 1))
def test_a_window_is_its_two_parts(
    timing: Timing, after: datetime, length: timedelta, share: float
) -> None:
    if timing.every is not None:
        length = min(length, timing.every * 20)
    middle, until = after + length * share, after + length
    parts = [*between(timing, after, middle), *between(timing, middle, until)]
    assert parts == list(between(timing, after, until))


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("at", [FIRST, LAST], ids=["first", "last"])
def test_ends_of_the_calendar_are_not_an_error(zone: str, at: datetime) -> None:
    for timing in (cron("30 2 * * *", zone), Timing(every=timedelta(days=36_500)), Timing(at=at)):
        following(timing, at)
        last(timing, at)
        assert len(upcoming(timing, at, 2)) <= 2
