"""Settings that can be changed at run time: which there are, and what each may be."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure._rules.runtime_settings import SETTINGS, check_setting
from tenure.errors import InvalidValue

COUNTS = [
    "max_attempts",
    "max_losses",
    "keep_archive_days",
    "keep_attempts_days",
    "keep_failed_days",
]
SECONDS = ["lease", "backoff_base", "backoff_cap"]
json_values = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.lists(st.integers())
)


def shown(value: object) -> str:
    """A text may be a secret."""
    return f"a {type(value).__name__}" if isinstance(value, str | list | dict) else repr(value)


def refusal(name: str, value: object) -> str:
    with pytest.raises(InvalidValue) as refused:
        check_setting(name, value)
    return str(refused.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("lease", 30),
        ("lease", 86_400),
        ("lease", 7.5),
        ("backoff_base", 0),
        ("backoff_cap", 3600.5),
        ("backoff_jitter", 0),
        ("backoff_jitter", 0.2),
        ("backoff_jitter", 1),
        ("redact", []),
        ("redact", ["ssn", "customer.iban"]),
        *((name, value) for name in COUNTS for value in (1, 32_767)),
    ],
)
def test_a_value_within_bounds_is_accepted(name: str, value: object) -> None:
    """Shows R38."""
    check_setting(name, value)


def test_a_setting_that_does_not_exist_is_refused_with_those_that_do() -> None:
    answer = refusal("leese", 30)
    assert answer.startswith("setting 'leese' does not exist; settings are lease, ")
    assert all(name in answer for name in SETTINGS)


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("value", [0, -1, 32_768, 1.5, "3", None, True, [1]])
def test_invalid_count_is_refused(name: str, value: object) -> None:
    answer = refusal(name, value)
    assert answer == f"{name} must be an int from 1 to 32,767, got {shown(value)}"


@pytest.mark.parametrize("name", SECONDS)
@pytest.mark.parametrize("value", [-1, "30", None, True, [30]])
def test_duration_that_is_not_a_number_is_refused(name: str, value: object) -> None:
    assert refusal(name, value) == f"{name} must be a number of seconds, got {shown(value)}"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e300, 10**30, 8e13])
def test_a_duration_that_reaches_past_all_dates_is_refused(value: float) -> None:
    assert all(refusal(name, value) for name in SECONDS)


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan"), float("inf"), "0.2", None, True])
def test_a_share_outside_nought_to_one_is_refused(value: object) -> None:
    assert refusal("backoff_jitter", value).startswith(
        "backoff_jitter must be a number from 0 to 1, got"
    )


@pytest.mark.parametrize(("value", "words"), [(3, "must be longer"), (86_401, "at most 1 day")])
def test_a_lease_for_all_obeys_the_rules_of_every_lease(value: int, words: str) -> None:
    """Shows R8."""
    assert words in refusal("lease", value)


@given(st.sampled_from(sorted(SETTINGS)), json_values)
def test_any_value_is_accepted_or_refused_in_our_own_words(name: str, value: object) -> None:
    with contextlib.suppress(InvalidValue):
        check_setting(name, value)
