"""Error signatures: errors of one cause share one, whatever numbers and ids they carry."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure._rules.sanitize import MAX_SIGNATURE, signature


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("row 17 of 300", "row 4 of 12"),
        ("<Thing object at 0x7f3a10>", "<Thing object at 0x55c0ffee>"),
        (
            "no user 6f1c2a3b-0000-4000-8000-0123456789ab",
            "no user 00000000-1111-4222-9333-ffffffffffff",
        ),
        ("digest 0123456789abcdef0123", "digest ffffffffffffffffffff"),
        ("no such file: 'a.txt'", "no such file: '/b/c'"),
        ('unknown column "x"', 'unknown column "long name"'),
        ("timed out\nafter a while", "timed out\nelsewhere"),
    ],
)
def test_errors_that_differ_in_what_varies_share_a_signature(one: str, other: str) -> None:
    assert signature("E", one) == signature("E", other)


@pytest.mark.parametrize(
    ("one", "other"), [("connection refused", "connection reset"), ("no row", "no column")]
)
def test_errors_of_other_words_do_not(one: str, other: str) -> None:
    assert signature("E", one) != signature("E", other)


def test_errors_of_other_types_do_not() -> None:
    assert signature("KeyError", "1") != signature("IndexError", "1")


def test_a_signature_can_be_read() -> None:
    answer = signature("ValueError", "  row 17: bad 'x'\n  more")
    assert answer == "ValueError: row …: bad …"


@given(st.text(), st.text())
def test_a_signature_is_short_and_never_empty(kind: str, message: str) -> None:
    assert 0 < len(signature(kind, message)) <= MAX_SIGNATURE


@given(st.integers(0), st.integers(0))
def test_numbers_never_tell_errors_apart(one: int, other: int) -> None:
    assert signature("E", f"item {one} failed") == signature("E", f"item {other} failed")
