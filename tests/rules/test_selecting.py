"""What a selector means: instants, numbers and shapes that a store can compare."""

from __future__ import annotations

import operator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure._model.job import State
from tenure._model.selector import Bound, Comparison, JobView
from tenure._rules.selector_query import between, numbers, shapes, states, views
from tenure._rules.selector_syntax import parse
from tenure.errors import InvalidValue

if TYPE_CHECKING:
    from collections.abc import Callable

NOW = datetime(2030, 1, 31, 12, tzinfo=UTC)
TICK = timedelta(microseconds=1)
COMPARE: dict[Comparison, Callable[[Any, Any], bool]] = {
    Comparison.EQUAL: operator.eq,
    Comparison.ABOVE: operator.gt,
    Comparison.AT_LEAST: operator.ge,
    Comparison.BELOW: operator.lt,
    Comparison.AT_MOST: operator.le,
}
sides = st.sampled_from([*COMPARE][1:])
few = st.integers(-3, 3)


@given(sides, few, few)
def test_an_instant_is_within_if_it_compares_so(
    comparing: Comparison, given: int, other: int
) -> None:
    at = NOW + other * TICK
    first, after = between([Bound(comparing, NOW + given * TICK)], NOW)
    within = (first is None or at >= first) and (after is None or at < after)
    assert within is COMPARE[comparing](other, given)


@given(sides, few, few)
def test_a_duration_is_compared_with_how_long_ago_it_was(
    comparing: Comparison, given: int, other: int
) -> None:
    at = NOW - other * TICK
    first, after = between([Bound(comparing, given * TICK)], NOW)
    within = (first is None or at >= first) and (after is None or at < after)
    assert within is COMPARE[comparing](other, given)


@given(st.sampled_from(Comparison), few, few)
def test_a_number_is_within_if_it_compares_so(
    comparing: Comparison, given: int, other: int
) -> None:
    least, greatest = numbers([Bound(comparing, given)])
    within = (least is None or other >= least) and (greatest is None or other <= greatest)
    assert within is COMPARE[comparing](other, given)


def test_a_range_has_both_sides() -> None:
    hour = timedelta(hours=1)
    assert between(parse("created:>1h created:<=2h").created, NOW) == (NOW - 2 * hour, NOW - hour)
    assert numbers(parse("attempt:>1 attempt:<4").attempt) == (2, 3)
    assert (between([], NOW), numbers([])) == ((None, None), (None, None))


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("", None),
        ("args.to:ada", [{"to": "ada"}]),
        ("args.a.b:7", [{"a": {"b": "7"}}, {"a": {"b": 7}}]),
        ("args.a:-1.5", [{"a": "-1.5"}, {"a": -1.5}]),
        ("args.a:true", [{"a": "true"}, {"a": True}]),
        ("args.a:null", [{"a": "null"}, {"a": None}]),
        ("args.a:007", [{"a": "007"}]),
        ("args.a.b:x,y args.a.c:z", [{"a": {"b": "x", "c": "z"}}, {"a": {"b": "y", "c": "z"}}]),
    ],
)
def test_arguments_are_looked_for_in_every_form_that_is_written_so(
    given: str, found: object
) -> None:
    assert shapes(parse(given).args) == found


@pytest.mark.parametrize("given", ["args.a:1 args.a.b:2", "args.a.b:2 args.a:1"])
def test_an_argument_within_another_is_refused(given: str) -> None:
    with pytest.raises(InvalidValue, match="is inside another"):
        shapes(parse(given).args)


def test_what_is_searched_are_the_states_that_can_match() -> None:
    assert set(states(parse(""))) == {*State}
    assert states(parse("state:due,held")) == [State.QUEUED]
    assert states(parse("state:expired,failed")) == [State.RUNNING, State.FAILED]
    assert State.QUEUED not in states(parse("worker:w"))
    assert states(parse("ended:<1h error:E")) == [State.FAILED]
    assert states(parse("state:completed,failed error:E")) == [State.FAILED]


def test_a_whole_state_beside_a_part_of_it_is_the_whole() -> None:
    assert views(parse("state:due"), State.QUEUED) == [JobView.DUE]
    assert views(parse("state:due,queued"), State.QUEUED) is None
    assert views(parse("state:failed"), State.QUEUED) is None
    assert views(parse("state:expired"), State.RUNNING) == [JobView.EXPIRED]
