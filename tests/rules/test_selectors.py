"""Selectors: what a text means, that it comes back, and that a wrong one is told where and why."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tenure._model.job import State
from tenure._model.selector import Argument, Bound, Comparison, JobView, Selector
from tenure._rules import selector_syntax
from tenure._rules.selector_syntax import parse, text
from tenure.errors import InvalidValue

HOUR = timedelta(hours=1)
storable = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=12
)
names = st.lists(storable, min_size=1, max_size=3, unique=True).map(tuple)
sides = st.sampled_from([*Comparison][1:])
instants = st.datetimes(
    datetime(2, 1, 1),  # noqa: DTZ001 - Hypothesis attaches the zone itself
    datetime(9998, 12, 31),  # noqa: DTZ001 - as above
    timezones=st.just(UTC),
)
times = st.builds(Bound, sides, instants | st.timedeltas(timedelta(0), timedelta(days=36_500)))
part = st.text(st.characters(categories=["L", "N"], include_characters="_-"), min_size=1)
SELECTORS = st.builds(
    Selector,
    state=st.just(()) | st.lists(st.sampled_from(JobView), min_size=1, unique=True).map(tuple),
    **{name: st.just(()) | names for name in ("queue", "task", "tag", "worker", "key", "error")},
    args=st.lists(
        st.builds(Argument, st.lists(part, min_size=1, max_size=3).map(tuple), names),
        max_size=3,
        unique_by=lambda one: one.path,
    ).map(tuple),
    **{name: st.lists(times, max_size=1).map(tuple) for name in ("created", "due", "ended")},
    attempt=st.lists(
        st.builds(Bound, st.sampled_from(Comparison), st.integers(0, 32_767)), max_size=1
    ).map(tuple),
)


@given(SELECTORS)
def test_a_selector_comes_back_from_its_text(selector: Selector) -> None:
    assert parse(text(selector)) == selector


@given(st.text() | st.text(alphabet='ategsidqu:,.<>="\\ 0123hd-TZ'))
@example("created:>" + "9" * 400 + "d")
@example("id:" + "9" * 400)
@example("created:>=0001-01-01T00:00+23:59")
@example("args.a.b:1,2 args.a.b:3")
def test_whatever_is_written_is_read_or_refused_as_invalid(given: str) -> None:
    try:
        selector = parse(given)
    except InvalidValue:
        return
    assert parse(text(selector)) == selector


def test_every_field_means_what_it_says() -> None:
    selector = parse(
        'state:failed,due queue:mail,"a b" task:send tag:vip worker:w1 key:k:1 error:ValueError '
        "args.user.id:7,8 args.to:ada created:<2h due:>=1h30m ended:<2030-02-01 "
        "ended:>=2030-01-31T10:00+01:00 attempt:>=3"
    )
    assert selector == Selector(
        state=(JobView.FAILED, JobView.DUE),
        queue=("mail", "a b"),
        task=("send",),
        tag=("vip",),
        worker=("w1",),
        key=("k:1",),
        error=("ValueError",),
        args=(Argument(("user", "id"), ("7", "8")), Argument(("to",), ("ada",))),
        created=(Bound(Comparison.BELOW, 2 * HOUR),),
        due=(Bound(Comparison.AT_LEAST, 1.5 * HOUR),),
        ended=(
            Bound(Comparison.BELOW, datetime(2030, 2, 1, tzinfo=UTC)),
            Bound(Comparison.AT_LEAST, datetime(2030, 1, 31, 9, tzinfo=UTC)),
        ),
        attempt=(Bound(Comparison.AT_LEAST, 3),),
    )
    assert parse("id:17,18") == Selector(id=(17, 18))
    assert parse(" \n") == Selector()


@pytest.mark.parametrize(
    ("given", "at", "why"),
    [
        ("stat:failed", 1, "there is no field 'stat'; fields are state, queue, task"),
        ("queue:mail failed", 12, "'failed' has no field; perhaps state:failed"),
        ("17", 1, "write id:17"),
        ("send", 1, "put task: in front of it"),
        ("tnr_0123456789012345678901234567", 1, "the text (32 characters)"),
        ('"a b"', 1, "a quoted value must follow a field"),
        ("state:faild", 7, "there is no state 'faild'; states are queued, scheduled, due"),
        ("queue:", 7, "a value is missing"),
        ("queue:a,,b", 9, "a value is missing"),
        ('queue:""', 7, "a value is empty"),
        ('key:a"b"', 6, "a quote begins inside a value"),
        ('key:"a', 5, "a quote is not closed"),
        ('key:"a"b', 8, "followed by a space or comma"),
        ("queue:a queue:b", 9, "queue: is given twice; write its values with commas"),
        ("id:x", 4, "'x' is not a job id"),
        ("id:0", 4, "write numbers"),
        ("args:7", 1, "name the argument, as in args.user.id:7"),
        ("args.:7", 1, "args. must be followed by a path"),
        ("args.a:1 args.a:2", 10, "the same argument is given twice"),
        ("created:2h", 9, "a time needs >, >=, < or <="),
        ("created:>soon", 9, "'soon' is not a time; as in created:<2h (less than two hours ago)"),
        ("created:>2030-01-31T09:00", 9, "an instant must have a time zone"),
        ("created:>99999999d", 9, "more than a hundred years"),
        ("created:>1h,2h", 1, "created: has several values"),
        ("created:>1h created:>2h", 13, "created: has this bound already"),
        ("attempt:3 attempt:<5", 11, "attempt: has this bound already"),
        ("attempt:=>3", 9, "the comparison is not valid"),
        ("attempt:many", 9, "'many' is not a number of attempts"),
    ],
)
def test_parse_error_names_its_place(given: str, at: int, why: str) -> None:
    with pytest.raises(InvalidValue) as raised:
        parse(given)
    assert f"at character {at}: " in str(raised.value)
    assert why in str(raised.value)


@pytest.mark.parametrize("given", ["id:1 state:failed", "x" * 4001, "key:\x00", "key:\ud800"])
def test_incomplete_selector_is_refused(given: str) -> None:
    with pytest.raises(InvalidValue):
        parse(given)


def test_the_example_of_every_error_is_one() -> None:
    assert text(parse(selector_syntax.EXAMPLE)) == (
        'state:failed task:mail.send error:"no route" args.user.id:7 created:<2h'
    )


def test_selector_says_whether_it_reads_payloads() -> None:
    for answer in ("key:a", "error:E", "args.a:1"):
        assert parse(answer).names_payload
    assert not parse(
        "state:failed queue:mail tag:vip worker:w id:1".partition(" id")[0]
    ).names_payload


def test_every_view_is_of_one_state() -> None:
    assert {view.state for view in JobView} == {*State}
    assert all(JobView(state).state is state for state in State)
