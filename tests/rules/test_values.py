"""Python values as JSON and back: what comes back is what was passed, or is refused."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from typing import Annotated, Any, Generic, Literal, NewType, Optional, TypedDict, TypeVar, Union
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from tenure._rules.payload import encode
from tenure._rules.serialization import dump, load
from tenure.errors import PayloadError

T = TypeVar("T")


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Mode(StrEnum):
    FAST = "fast"
    SAFE = "safe"


@dataclass(frozen=True)
class Point:
    x: int
    y: float = 0.0


@dataclass(frozen=True)
class Order:
    id: UUID
    placed_at: datetime
    due_on: date
    price: Decimal
    takes: timedelta
    colour: Colour
    level: Level
    mode: Mode
    at: Point
    by: Point | None
    notes: list[str]
    way: tuple[Point, ...]
    pair: tuple[int, Colour]
    places: dict[str, Point]


@dataclass(frozen=True)
class Tree:
    name: str
    children: list[Tree] = field(default_factory=list)


class Line(BaseModel):
    article: UUID
    price: Decimal
    takes: timedelta
    made_at: datetime
    colour: Colour | None = None


class Invoice(BaseModel):
    lines: list[Line]
    at: Point


@dataclass(frozen=True)
class Parcel:
    invoice: Invoice
    weight: Decimal


class Movie(TypedDict):
    title: str


UserId = NewType("UserId", UUID)

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=20)
integers = st.integers(-(2**63), 2**63 - 1)
floats = st.floats(-(2.0**62), 2.0**62)
offsets = st.integers(-14 * 60, 14 * 60).map(lambda m: timezone(timedelta(minutes=m)))
instants = st.datetimes(timezones=st.just(UTC) | offsets)
decimals = st.decimals(allow_nan=False)
century = timedelta(days=36_500)
durations = st.timedeltas(-century, century)
colours = st.sampled_from(Colour)
points = st.builds(Point, integers, floats)
orders = st.builds(
    Order,
    id=st.uuids(),
    placed_at=instants,
    due_on=st.dates(),
    price=decimals,
    takes=durations,
    colour=colours,
    level=st.sampled_from(Level),
    mode=st.sampled_from(Mode),
    at=points,
    by=st.none() | points,
    notes=st.lists(texts, max_size=3),
    way=st.lists(points, max_size=3).map(tuple),
    pair=st.tuples(integers, colours),
    places=st.dictionaries(texts, points, max_size=3),
)
trees = st.recursive(
    st.builds(Tree, texts), lambda inner: st.builds(Tree, texts, st.lists(inner, max_size=3))
)
lines = st.builds(
    Line,
    article=st.uuids(),
    price=st.decimals(allow_nan=False, allow_infinity=False),
    takes=durations,
    made_at=instants,
    colour=st.none() | colours,
)
invoices = st.builds(Invoice, lines=st.lists(lines, max_size=2), at=points)
plain = st.recursive(
    st.none() | st.booleans() | integers | floats | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=20,
)
anything = st.recursive(
    plain
    | st.binary()
    | orders
    | lines
    | st.complex_numbers()
    | st.just(object())
    | st.just(Point),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner)
        | st.dictionaries(st.text() | st.integers(), inner, max_size=3)
        | st.sets(st.integers(), max_size=3)
    ),
    max_leaves=8,
)

KINDS: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (datetime, st.datetimes() | instants),
    (date, st.dates()),
    (timedelta, durations),
    (UUID, st.uuids()),
    (Decimal, decimals),
    (Colour, colours),
    (Level, st.sampled_from(Level)),
    (Mode, st.sampled_from(Mode)),
    (Point, points),
    (Order, orders),
    (Tree, trees),
    (Line, lines),
    (Invoice, invoices),
    (Parcel, st.builds(Parcel, invoices, decimals)),
    (Optional[Point], st.none() | points),  # noqa: UP045 - the older spelling counts too
    (datetime | None, st.none() | instants),
    (Annotated[UUID, "of the customer"], st.uuids()),
    (list[Point], st.lists(points, max_size=3)),
    (Sequence[UUID], st.lists(st.uuids(), max_size=3)),
    (list[list[Decimal]], st.lists(st.lists(decimals, max_size=2), max_size=2)),
    (tuple[Colour, ...], st.lists(colours, max_size=3).map(tuple)),
    (tuple[int, date, Point], st.tuples(integers, st.dates(), points)),
    (dict[str, Order], st.dictionaries(texts, orders, max_size=2)),
    (Mapping[str, datetime], st.dictionaries(texts, instants, max_size=3)),
    (dict[str, list[Point | None]], st.dictionaries(texts, st.lists(st.none() | points))),
    (Point | UUID | None, st.none() | points | st.uuids()),
    (Union[int, Colour], integers | colours),  # noqa: UP007 - the older spelling counts too
    (str | list[Point], texts | st.lists(points, max_size=3)),
]


def stored(value: object) -> Any:
    """What the database gives back of a value."""
    return json.loads(encode(dump(value)))


def refusal(value: object, kind: object) -> str:
    with pytest.raises(PayloadError) as refused:
        load(value, kind, what="argument 'n'")
    return str(refused.value)


@pytest.mark.parametrize(("kind", "values"), KINDS, ids=[str(kind) for kind, _ in KINDS])
@given(data=st.data())
def test_a_value_comes_back_as_its_annotation_says(
    kind: Any, values: st.SearchStrategy[Any], data: st.DataObject
) -> None:
    value = data.draw(values)
    back = load(stored(value), kind)
    assert back == value
    assert type(back) is type(value)


@pytest.mark.parametrize("kind", [None, Any, object, Literal["a"], TypeVar("Free"), Movie])
@given(value=plain)
def test_without_a_kind_to_rebuild_a_value_stays_as_json_has_it(kind: Any, value: object) -> None:
    assert dump(value) == value
    assert load(value, kind) == value


@given(anything)
def test_anything_is_either_written_or_refused_as_a_payload(value: object) -> None:
    with suppress(PayloadError):
        encode(dump(value))


@pytest.mark.parametrize("value", [{1}, b"x", object(), 1j, Point, {1: 2}, {UUID(int=1): 2}])
def test_what_json_does_not_have_is_left_to_the_payload_check(value: object) -> None:
    with pytest.raises(PayloadError, match="; "):
        encode(dump({"deep": [value]}))


def test_what_is_written_is_plain() -> None:
    at = datetime(2026, 3, 1, 12, tzinfo=UTC)
    assert dump([at, at.date(), timedelta(minutes=1), UUID(int=1), Decimal("1.10")]) == [
        "2026-03-01T12:00:00+00:00",
        "2026-03-01",
        60.0,
        "00000000-0000-0000-0000-000000000001",
        "1.10",
    ]
    assert dump((Colour.RED, Level.HIGH, Mode.FAST)) == ["red", 2, "fast"]
    assert type(dump(Level.HIGH)) is int
    assert dump(Parcel(Invoice(lines=[], at=Point(1)), Decimal(2))) == {
        "invoice": {"lines": [], "at": {"x": 1, "y": 0.0}},
        "weight": "2",
    }


def test_a_field_that_was_added_since_takes_its_default() -> None:
    assert load({"x": 1}, Point) == Point(1, 0.0)


def test_the_first_member_of_a_union_that_fits_is_taken() -> None:
    assert load(str(UUID(int=1)), UUID | str) == UUID(int=1)
    assert load("plain", UUID | str) == "plain"
    assert load(str(UUID(int=1)), str | UUID) == str(UUID(int=1))
    assert load({"name": "oak"}, Point | Tree) == Tree("oak")


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("soon", datetime),
        (5, datetime),
        ("2026-03-01T12:00:00", date),
        ("soon", timedelta),
        (1e300, timedelta),
        ("no id", UUID),
        (5, UUID),
        ("much", Decimal),
        ("green", Colour),
        ([1], Colour),
        (3, Level),
        ([1], Point),
        ({}, Point),
        ({"x": 1, "z": 2}, Point),
        ({"at": {"x": 1}, "lines": [{"price": "much"}]}, Invoice),
        ([1], tuple[int, Colour]),
        ([1, "red", 3], tuple[int, Colour]),
        (["red", "green"], list[Colour]),
        ({"a": "red", "b": "green"}, dict[str, Colour]),
    ],
    ids=str,
)
def test_what_does_not_fit_its_annotation_is_refused(value: object, kind: object) -> None:
    assert refusal(value, kind).startswith("argument 'n' does not fit ")


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ({"z": 1}, Point | None),
        ("soon", datetime | None),
        ("no id", UUID | None),
        ("green", Colour | None),
        ([{"z": 1}], list[Point | None]),
    ],
    ids=str,
)
def test_optional_kind_is_checked_too(value: object, kind: object) -> None:
    refusal(value, kind)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ({"x": 1}, list[Point]),
        ("red", list[Colour]),
        ([1], dict[str, Point]),
        ({"x": 1}, tuple[Point, ...]),
        (7, Sequence[UUID]),
    ],
    ids=str,
)
def test_another_shape_than_the_annotation_has_is_refused(value: object, kind: object) -> None:
    """The handler would get what it does not name: a dict in place of a list of its objects."""
    refusal(value, kind)


def test_a_union_looks_past_a_member_of_another_shape() -> None:
    assert load({"x": 1}, list[Point] | Point) == Point(1)
    assert load({"a": {"x": 1}}, list[Point] | dict[str, Point]) == {"a": Point(1)}


@pytest.mark.parametrize("value", [1, 1.5, "a"])
def test_a_whole_number_fits_a_union_with_float(value: object) -> None:
    """To a type checker an int is a float, so enqueue takes one."""
    assert load(stored(value), float | str) == value


@dataclass
class Counted:
    words: str
    count: int = field(init=False)

    def __post_init__(self) -> None:
        self.count = len(self.words.split())


def test_computed_dataclass_field_is_accepted() -> None:
    assert load(stored(Counted("to and fro")), Counted) == Counted("to and fro")


@dataclass
class Strict:
    n: int

    def __post_init__(self) -> None:
        if self.n < 0:
            raise LookupError("negative")


def test_whatever_a_class_raises_while_it_is_rebuilt_is_a_refusal() -> None:
    """Otherwise a payload that never fits would be tried again as if the handler had failed."""
    assert "negative" in refusal({"n": -1}, Strict)


def test_a_new_type_is_rebuilt_as_the_type_it_is_of() -> None:
    assert load(stored(UserId(UUID(int=1))), UserId) == UUID(int=1)


@dataclass
class Box(Generic[T]):
    inside: T


def test_a_generic_dataclass_is_rebuilt() -> None:
    assert load(stored(Box(1)), Box[int]) == Box(1)
