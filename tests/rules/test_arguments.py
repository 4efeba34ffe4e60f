"""A task's parameters: what an enqueue may pass, and what the handler is called with later."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure._rules.arguments import Parameters
from tenure._rules.payload import encode
from tenure.errors import InvalidValue, PayloadError

if TYPE_CHECKING:
    from collections.abc import Callable
    from decimal import Decimal

    from tenure import Job

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@dataclass(frozen=True)
class Point:
    x: int


def through(function: Callable[..., Any], *args: object, **kwargs: object) -> Any:
    """What the function answers once its arguments have been to the database and back."""
    parameters = Parameters(function, skip=0)
    positional, named = parameters.load(json.loads(encode(parameters.dump(args, kwargs))))
    return function(*positional, **named)


def refusal(function: Callable[..., Any], *args: object, **kwargs: object) -> str:
    with pytest.raises(InvalidValue) as refused:
        Parameters(function, skip=0).dump(args, kwargs)
    return str(refused.value)


def invalid_arguments(function: Callable[..., Any], args: object) -> str:
    with pytest.raises(PayloadError) as refused:
        Parameters(function, skip=0).load(args)
    return str(refused.value)


def every_kind(a: int, b: int = 2, /, c: int = 3, *, d: int = 4, **rest: int) -> tuple[object, ...]:
    return a, b, c, d, rest


numbers = st.integers(-(2**63), 2**63 - 1)
names = st.text("efgh", min_size=1, max_size=3)


@st.composite
def calls(draw: st.DrawFn) -> tuple[list[int], dict[str, int]]:
    """Arguments that `every_kind` can be called with."""
    positional = draw(st.lists(numbers, min_size=1, max_size=3))
    named = draw(st.dictionaries(names, numbers, max_size=3))
    if len(positional) < 3 and draw(st.booleans()):
        named["c"] = draw(numbers)
    if draw(st.booleans()):
        named["d"] = draw(numbers)
    return positional, named


@given(calls())
def test_a_call_that_went_through_the_database_is_the_call_that_was_made(
    call: tuple[list[int], dict[str, int]],
) -> None:
    positional, named = call
    assert through(every_kind, *positional, **named) == every_kind(*positional, **named)


def meet(point: Point, at: datetime, points: list[Point] | None = None) -> tuple[object, ...]:
    return point, at, points


def test_arguments_are_rebuilt_by_their_annotations() -> None:
    assert through(meet, Point(1), at=NOON) == (Point(1), NOON, None)
    assert through(meet, Point(1), NOON, [Point(2)]) == (Point(1), NOON, [Point(2)])


def test_arguments_are_stored_by_name() -> None:
    assert Parameters(meet, skip=0).dump((Point(1), NOON), {}) == {
        "point": {"x": 1},
        "at": "2026-03-01T12:00:00+00:00",
    }


def test_handle_is_not_an_argument() -> None:
    def handler(job: object, name: str) -> None: ...

    parameters = Parameters(handler, skip=1)
    assert parameters.dump(("Ada",), {}) == {"name": "Ada"}
    assert parameters.load({"name": "Ada"}) == ([], {"name": "Ada"})
    with pytest.raises(InvalidValue, match=r"handler\(name: 'str'\) -> 'None' cannot be called"):
        parameters.dump((object(), "Ada"), {})


def test_a_default_is_the_one_in_force_when_the_job_runs() -> None:
    def at_enqueue(n: int, unit: str = "old") -> None: ...
    def at_run(n: int, unit: str = "new") -> str:
        return f"{n} {unit}"

    args = Parameters(at_enqueue, skip=0).dump((1,), {})
    assert args == {"n": 1}
    positional, named = Parameters(at_run, skip=0).load(args)
    assert at_run(*positional, **named) == "1 new"


@pytest.mark.parametrize(
    ("args", "kwargs", "why"),
    [
        ((), {}, "missing a required argument: 'point'"),
        ((1,), {}, "missing a required argument: 'at'"),
        ((1, 2, 3, 4), {}, "too many positional arguments"),
        ((1,), {"point": 2, "at": 3}, "multiple values for argument 'point'"),
        ((1,), {"att": 3}, "got an unexpected keyword argument 'att'"),
        ((1, 2), {"when": 3}, "got an unexpected keyword argument 'when'"),
    ],
)
def test_a_call_that_does_not_fit_the_signature_is_refused_with_the_signature(
    args: tuple[object, ...], kwargs: dict[str, object], why: str
) -> None:
    answer = refusal(meet, *args, **kwargs)
    assert answer.startswith("meet(point: 'Point', at: 'datetime', points: ")
    assert answer.endswith(f"cannot be called so: {why}; pass its parameters by name")


def test_a_positional_only_parameter_is_not_passed_by_name() -> None:
    def only(a: int, /) -> None: ...

    assert refusal(only, a=1)


def test_a_function_that_takes_any_number_of_arguments_is_refused_with_what_to_write() -> None:
    def add(*numbers: int) -> None: ...

    with pytest.raises(InvalidValue, match=r"add takes \*numbers, .* by name; take a list instead"):
        Parameters(add, skip=0)


@pytest.mark.parametrize(
    ("args", "why"),
    [
        ({"point": {"x": 1}}, "missing a required argument: 'at'"),
        ({}, "missing a required argument: 'point'"),
        (
            {"point": {"x": 1}, "at": NOON.isoformat(), "unit": 1},
            "got an unexpected keyword argument 'unit'",
        ),
    ],
)
def test_arguments_that_no_longer_fit_the_signature_say_how_to_change_one(
    args: object, why: str
) -> None:
    answer = invalid_arguments(meet, args)
    assert answer.startswith("the arguments no longer fit meet(point: 'Point', ")
    assert answer.endswith(f"{why}; give a new parameter a default while old jobs live")


@pytest.mark.parametrize(
    ("args", "which"),
    [
        ({"point": {"y": 1}, "at": NOON.isoformat()}, "argument 'point' does not fit Point"),
        ({"point": {"x": 1}, "at": "soon"}, "argument 'at' does not fit datetime"),
    ],
)
def test_an_argument_that_no_longer_fits_its_annotation_is_named(args: object, which: str) -> None:
    assert invalid_arguments(meet, args).startswith(which)


@pytest.mark.parametrize("args", [None, [], "x", 1])
def test_arguments_that_are_not_an_object_cannot_be_decoded(args: object) -> None:
    assert invalid_arguments(meet, args) == "the arguments must be an object of names and values"


def test_what_is_returned_is_known_by_its_annotation() -> None:
    def unsaid(n: int): ...  # type: ignore[no-untyped-def]  # What is not said is under test.
    def given(n: int) -> list[Point]:
        return [Point(n)]

    assert Parameters(unsaid, skip=0).returns is None
    assert Parameters(given, skip=0).returns == list[Point]


def later(value: Defined) -> Defined:
    return value


@dataclass(frozen=True)
class Defined:
    x: int


def test_an_annotation_may_name_what_is_defined_below_the_function() -> None:
    assert through(later, Defined(1)) == Defined(1)


def test_the_rest_of_the_named_arguments_is_rebuilt_by_its_annotation() -> None:
    def mark(**places: Point) -> dict[str, Point]:
        return places

    assert through(mark, here=Point(1), places=Point(2)) == {"here": Point(1), "places": Point(2)}


def test_the_rest_may_not_have_the_name_of_a_positional_only_parameter() -> None:
    """Python allows it; by name, only one of the two could be stored."""

    def tag(name: str, /, **extra: str) -> tuple[object, ...]:
        return name, extra

    assert tag("Ada", name="Lovelace") == ("Ada", {"name": "Lovelace"})
    assert "name" in refusal(tag, "Ada", name="Lovelace")


def test_an_argument_does_not_slip_into_the_place_of_one_that_is_missing() -> None:
    """The first parameter was given a place of its own after the job was enqueued."""

    def scale(by: int = 1, width: int = 2, /) -> tuple[int, int]:
        return by, width

    positional, named = Parameters(scale, skip=0).load({"width": 7})
    assert scale(*positional, **named) == (1, 7)


def test_names_that_only_the_type_checker_knows_do_not_stand_in_the_way() -> None:
    """Linters move an import that only annotations use under `if TYPE_CHECKING`."""

    def pay(job: Job, price: Decimal, at: datetime) -> Decimal:
        return price

    parameters = Parameters(pay, skip=1)
    assert parameters.dump((1, NOON), {}) == {"price": 1, "at": NOON.isoformat()}
    assert parameters.load({"price": 1, "at": NOON.isoformat()}) == ([], {"price": 1, "at": NOON})
    assert parameters.returns is None


def send(
    to: str,
    n: int | None = None,
    ids: list[int] | None = None,
    at: datetime | None = None,
    pair: tuple[int, str] = (1, "a"),
    point: Point | None = None,
    loose: str = None,  # type: ignore[assignment] # noqa: RUF013 - as many write it
) -> None: ...


@pytest.mark.parametrize(
    ("args", "why"),
    [
        ({"to": None}, "'to' is None, not a str"),
        ({"n": "seven"}, r"'n' is a str, not int \| None"),
        ({"ids": "7"}, r"'ids' is a str, not list\[int\] \| None"),
        ({"at": "tomorrow"}, r"'at' is a str, not datetime.datetime \| None"),
        ({"pair": [1]}, r"'pair' is a list, not tuple\[int, str\]"),
        ({"pair": None}, r"'pair' is None, not tuple\[int, str\]"),
        ({"point": {"y": 1}}, r"'point' is a dict, not .*Point \| None"),
    ],
)
def test_what_no_worker_could_rebuild_is_refused_at_enqueue(args: dict[str, Any], why: str) -> None:
    values = refusal(send, **{"to": "Ada"} | args)
    assert re.search(why, values), values


@pytest.mark.parametrize(
    "args",
    [
        {"n": None},
        {"n": 7, "ids": [1, 2]},
        {"at": NOON},
        {"at": NOON.isoformat()},
        {"pair": (2, "b")},
        {"point": Point(1)},
        {"loose": None},
    ],
)
def test_what_a_worker_can_rebuild_is_taken(args: dict[str, Any]) -> None:
    assert through(send, "Ada", **args) is None


def judged(
    a: Any,
    b: object,
    c: Literal["x"] | None,
    d: NoSuchName,  # type: ignore[name-defined] # noqa: F821 - an unknown name
    e: Annotated[int | None, ["a note"]],
) -> None: ...


def test_an_annotation_that_cannot_be_judged_lets_everything_through() -> None:
    assert Parameters(judged, skip=0).dump((None,) * 5, {}) == dict.fromkeys("abcde")
    assert Parameters(judged, skip=0).dump((1,) * 5, {}) == dict.fromkeys("abcde", 1)
