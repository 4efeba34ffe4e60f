"""What a job's own fields may be: names, keys, times, counts. Refused before any SQL."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure._model.job import NewJob
from tenure._rules.payload import MAX_KEY, MAX_NAME, check, check_name
from tenure.errors import InvalidValue, PayloadError

SECOND = timedelta(seconds=1)
JOB = NewJob("task")


def refusal(**fields: Any) -> str:
    with pytest.raises((InvalidValue, PayloadError)) as refused:
        check(replace(JOB, **fields))
    return str(refused.value)


@pytest.mark.parametrize(
    "name", ["a", "A1", "_x", "mail.send", "a:b/c", "app.<locals>.f", "x@y", "a-b", "n" * MAX_NAME]
)
def test_names_of_functions_and_paths_are_accepted(name: str) -> None:
    check(NewJob(name, queue=name))


@pytest.mark.parametrize(
    "name", ["", " ", "a b", "-a", ".a", "*", "ä", "a\n", "a\x00", "a'b", "n" * (MAX_NAME + 1)]
)
def test_a_name_that_cannot_be_typed_everywhere_is_refused(name: str) -> None:
    for field, what in (("queue", "queue"), ("task", "task")):
        values = refusal(**{field: name})
        assert f"{what} name must be 1 to 200 letters" in values
        assert "beginning with a letter" in values


@given(st.text(max_size=300))
def test_an_accepted_name_is_short_ascii(name: str) -> None:
    try:
        check_name(name, "queue")
    except InvalidValue:
        return
    assert name.isascii()
    assert name.isprintable()
    assert 1 <= len(name) <= MAX_NAME


@pytest.mark.parametrize("priority", [-1, 10, 100])
def test_a_priority_outside_nought_to_nine_is_refused(priority: int) -> None:
    answer = refusal(priority=priority)
    assert answer == f"priority must be 0 to 9 (9 is the most urgent), got {priority}"


@given(st.integers(0, 9))
def test_every_priority_from_nought_to_nine_is_accepted(priority: int) -> None:
    check(replace(JOB, priority=priority))


@pytest.mark.parametrize("key", ["", "k" * (MAX_KEY + 1)])
def test_a_key_that_is_empty_or_too_long_is_refused(key: str) -> None:
    assert refusal(key=key).startswith("the key must have 1 to 400 characters, got")


@pytest.mark.parametrize("key", ["\x00", "\ud800"])
def test_a_key_that_is_not_storable_text_is_refused(key: str) -> None:
    assert refusal(key=key).endswith("remove it")


@pytest.mark.parametrize("fields", [{"key_for": SECOND}, {"key": "k", "key_for": -SECOND}])
def test_key_for_needs_a_key_and_is_not_negative(fields: dict[str, Any]) -> None:
    assert refusal(**fields) == "key_for needs a key and must not be negative"


def test_key_for_that_reaches_past_all_dates_is_refused() -> None:
    """It is added to the end of the job: where that overflows, the job could never end."""
    assert "key_for" in refusal(key="k", key_for=timedelta.max)


def test_a_delay_that_reaches_past_all_dates_is_refused() -> None:
    assert "delay" in refusal(delay=timedelta.max)


def test_run_at_and_delay_together_are_refused() -> None:
    answer = refusal(run_at=datetime.now(UTC), delay=SECOND)
    assert answer == "give run_at or delay, not both"


def test_a_time_without_a_zone_is_refused() -> None:
    """Shows R25."""
    naive = datetime.now(UTC).replace(tzinfo=None)
    answer = refusal(run_at=naive)
    assert answer == f"run_at must have a time zone, got {naive}; write datetime.now(UTC)"


@pytest.mark.parametrize(
    ("name", "value", "least"),
    [
        ("max_attempts", 0, 1),
        ("max_attempts", -1, 1),
        ("max_attempts", 32_768, 1),
        ("max_losses", -1, 0),
        ("max_losses", 32_768, 0),
    ],
)
def test_a_cap_that_the_table_cannot_hold_is_refused(name: str, value: int, least: int) -> None:
    assert refusal(**{name: value}) == f"{name} must be {least} to 32,767, got {value}"


def test_no_losses_at_all_is_how_a_job_says_that_it_fails_on_loss() -> None:
    check(replace(JOB, max_losses=0))


@pytest.mark.parametrize("target", [0, -5, 2**31])
def test_a_target_that_the_table_cannot_hold_is_refused(target: int) -> None:
    assert refusal(target=target).endswith(f", got {target}")


@pytest.mark.parametrize("lease", [timedelta(seconds=3), timedelta(days=2)])
def test_a_lease_that_is_too_short_or_too_long_is_refused(lease: timedelta) -> None:
    """Shows R8."""
    assert refusal(lease=lease).startswith("lease must be")


def test_a_job_with_everything_in_bounds_is_accepted() -> None:
    check(
        NewJob(
            "task",
            queue="q",
            priority=9,
            delay=SECOND,
            key="k" * MAX_KEY,
            key_for=timedelta(days=30),
            max_attempts=32_767,
            max_losses=1,
            lease=timedelta(seconds=4),
            target=1,
        )
    )
