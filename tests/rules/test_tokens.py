"""The form of an access token's secret: what scanners find, what a typo cannot keep."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure._rules import access

entropy = st.binary(min_size=32, max_size=32)
SECRET = access.secret(bytes(range(32)))


def test_a_secret_has_its_prefix_256_bits_and_a_checksum() -> None:
    assert re.fullmatch(r"tnr_[0-9A-Za-z]{49}", SECRET)
    assert access.is_whole(SECRET)


def test_the_form_is_what_was_given_out_once() -> None:
    """A change of it would refuse every token that is out there."""
    assert SECRET[4:] == "003aUlTJC7tjlCTQj2uNU3MFagCXG9LRKRcwGkBIDlf3QianH"
    assert access.digest("tnr_")[:16] == "71e75b72cc7cb21e"


@given(entropy, entropy)
def test_two_secrets_are_the_same_only_if_made_of_the_same(one: bytes, other: bytes) -> None:
    assert (access.secret(one) == access.secret(other)) is (one == other)
    assert access.is_whole(access.secret(one))


@given(entropy, st.integers(0, 52), st.sampled_from("0aZ_- é\n"))
def test_one_wrong_sign_is_noticed(made_of: bytes, place: int, sign: str) -> None:
    secret = access.secret(made_of)
    mistyped = secret[:place] + sign + secret[place + 1 :]
    assert access.is_whole(mistyped) is (mistyped == secret)


@given(st.text())
def test_other_text_is_not_a_secret(text: str) -> None:
    assert not access.is_whole(text)


@pytest.mark.parametrize(
    "text", ["", "tnr_", SECRET[:-1], SECRET + "x", f" {SECRET}", SECRET + "\n"]
)
def test_what_was_not_copied_whole_is_noticed(text: str) -> None:
    assert not access.is_whole(text)


@pytest.mark.parametrize("size", [0, 16, 31, 33])
def test_a_secret_of_less_is_a_defect(size: int) -> None:
    with pytest.raises(AssertionError):
        access.secret(bytes(size))


def test_a_hint_is_the_beginning_and_not_enough() -> None:
    assert SECRET.startswith(access.hint(SECRET))
    assert len(access.hint(SECRET)) == 8


def test_digests_are_compared_whole() -> None:
    digest = access.digest(SECRET)
    assert access.same(digest, access.digest(SECRET))
    assert not access.same(digest, digest[:-1] + "_")
