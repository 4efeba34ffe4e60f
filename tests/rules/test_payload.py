"""What may be enqueued as arguments: JSON that PostgreSQL keeps unchanged, within limits."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure._rules.payload import MAX_DEPTH, MAX_PAYLOAD, encode, encode_list
from tenure.errors import PayloadError

plain_text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))
plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(-(2.0**62), 2.0**62)
    | plain_text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(plain_text, inner, max_size=4),
    max_leaves=20,
)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text() | st.integers() | st.tuples(st.text()), inner, max_size=4)
        | st.sets(st.integers(), max_size=3)
    ),
    max_leaves=20,
)


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def refusal(value: object) -> str:
    with pytest.raises(PayloadError) as refused:
        encode(value)
    return str(refused.value)


@given(plain)
def test_what_json_can_carry_comes_back_as_it_was(value: object) -> None:
    assert json.loads(encode(value)) == value


@given(anything)
def test_anything_is_either_written_as_storable_text_or_refused(value: object) -> None:
    try:
        text = encode(value)
    except PayloadError:
        return
    assert "\x00" not in text
    assert len(text.encode()) <= MAX_PAYLOAD
    # PostgreSQL's jsonb refuses the escape of NUL as it refuses NUL itself.
    assert "\x00" not in json.dumps(json.loads(text), ensure_ascii=False)


def test_a_tuple_is_written_as_a_list() -> None:
    assert encode({"a": (1, 2)}) == '{"a":[1,2]}'


def test_text_is_measured_in_bytes_not_in_characters() -> None:
    assert encode("ä" * 10, limit=22)
    with pytest.raises(PayloadError, match="at most 21 bytes of JSON, got 22"):
        encode("ä" * 10, limit=21)


def test_arguments_of_just_the_limit_are_accepted() -> None:
    assert len(encode("x" * (MAX_PAYLOAD - 2)).encode()) == MAX_PAYLOAD
    answer = refusal("x" * (MAX_PAYLOAD - 1))
    assert answer == (
        "the arguments must be at most 262,144 bytes of JSON, got 262,145; "
        "store the data elsewhere and pass a reference to it"
    )


def test_nesting_has_an_end() -> None:
    assert encode(nested(MAX_DEPTH))
    assert refusal(nested(MAX_DEPTH + 1)).endswith("nested at most 64 deep; flatten them")


def test_a_list_that_holds_itself_is_refused_as_too_deep() -> None:
    loop: list[Any] = []
    loop.append(loop)
    assert "deep" in refusal(loop)


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 10**100])
def test_an_integer_beyond_64_bits_is_refused(number: int) -> None:
    assert refusal([number]).endswith("beyond 64 bits; pass it as a string")


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_a_number_that_json_does_not_have_is_refused(number: float) -> None:
    assert refusal({"x": number}).endswith("which JSON does not have; pass None")


@pytest.mark.parametrize("value", ["a\x00b", {"a\x00b": 1}, [["\x00"]]])
def test_nul_is_refused_wherever_it_is(value: object) -> None:
    assert refusal(value).endswith("which PostgreSQL cannot store; remove it")


@pytest.mark.parametrize("value", ["\ud800", {"\udfff": 1}, ["a\udc80"]])
def test_a_lone_surrogate_is_refused_wherever_it_is(value: object) -> None:
    assert refusal(value).endswith("which is not valid text; remove it")


@pytest.mark.parametrize("value", [{1}, b"x", object(), datetime.now(UTC), 1j])
def test_a_type_that_json_does_not_have_is_refused_by_its_name(value: object) -> None:
    assert f"must not contain a {type(value).__name__}, which JSON does not have" in refusal(
        [value]
    )


@pytest.mark.parametrize("name", [1, None, ("a", "b"), 1.5])
def test_a_key_that_is_not_text_is_refused(name: object) -> None:
    """JSON would turn it into text and give back something else."""
    assert f"must have string keys, got {name!r}" in refusal({name: 1})


@pytest.mark.parametrize("value", [{1}, {1: 2}, nested(70), 2**64, float("nan"), "\x00", "\ud800"])
def test_every_refusal_ends_with_what_to_do(value: object) -> None:
    _, remedy = refusal(value).split("; ", 1)
    assert remedy


def test_a_refusal_says_what_it_is_about() -> None:
    with pytest.raises(PayloadError, match=r"^the results must not contain NUL"):
        encode("\x00", what="the results")


@given(st.lists(plain, max_size=4))
def test_several_are_one_list_of_what_each_would_be(values: list[Any]) -> None:
    assert json.loads(encode_list(values)) == [json.loads(encode(value)) for value in values]


def test_each_of_several_has_the_limit_to_itself() -> None:
    fits = "x" * (MAX_PAYLOAD - 2)
    assert json.loads(encode_list([fits, fits])) == [fits, fits]
    with pytest.raises(PayloadError, match="must be at most"):
        encode_list([fits, fits + "x"])
