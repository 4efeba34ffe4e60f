"""What may not be enqueued: refused before any SQL, with words that help."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest

from support.store import SECOND
from tenure._rules.payload import MAX_KEY, MAX_NAME, MAX_PAYLOAD
from tenure._store.postgres.store import PostgresStore
from tenure.errors import InvalidValue, PayloadError
from tests.conformance.acts import DAY, a_job, enqueue, get

if TYPE_CHECKING:
    from support.store import Database


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth - 1):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("args", "words"),
    [
        pytest.param({"a": "x" * MAX_PAYLOAD}, "pass a reference", id="too large"),
        pytest.param(nested(100), "flatten", id="too deep"),
        pytest.param({"a": 2**63}, "as a string", id="integer beyond 64 bits"),
        pytest.param([float("nan")], "pass None", id="not a number"),
        pytest.param([float("-inf")], "pass None", id="infinite"),
        pytest.param(["a\0b"], "must not contain NUL.*remove it", id="NUL"),
        pytest.param({"a\0b": 1}, "must not contain NUL.*remove it", id="NUL in a name"),
        pytest.param(["\ud800"], "lone surrogate.*remove it", id="surrogate"),
        pytest.param({1: 2}, "must have string keys, got 1", id="name that is not text"),
        pytest.param({"a": {1, 2}}, "must not contain a set", id="set"),
        pytest.param(
            [datetime(2026, 1, 1, tzinfo=UTC)], "must not contain a datetime", id="datetime"
        ),
    ],
)
@pytest.mark.parametrize("field", ["args", "meta"])
def test_values_that_cannot_be_stored_are_refused(field: str, args: Any, words: str) -> None:
    fields: dict[str, Any] = {field: args if isinstance(args, dict) else {"a": args}}
    with pytest.raises(PayloadError, match=words):
        next(PostgresStore().jobs.enqueue([a_job(**fields)]))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"queue": ""}, "queue name must be"),
        ({"queue": "*"}, "queue name must be"),
        ({"queue": "two words"}, "letters, digits"),
        ({"task": "x" * (MAX_NAME + 1)}, "task name must be"),
        ({"priority": 10}, "9 is the most urgent"),
        ({"priority": -1}, "priority must be 0 to 9"),
        ({"key": ""}, "the key must have 1 to 400"),
        ({"key": "x" * (MAX_KEY + 1)}, "got 401"),
        ({"key_for": DAY}, "needs a key"),
        ({"key": "k", "key_for": -SECOND}, "not be negative"),
        ({"run_at": datetime(2026, 1, 1, tzinfo=UTC), "delay": DAY}, "run_at or delay, not both"),
        ({"run_at": datetime(2026, 1, 1)}, "must have a time zone"),  # noqa: DTZ001 - that is the point
        ({"run_at": datetime.max.replace(tzinfo=timezone(-SECOND))}, "in the years 1 to 9999"),
        ({"max_attempts": 0}, "1 to 32,767"),
        ({"max_losses": -1}, "0 to 32,767"),
        ({"max_losses": 40_000}, "0 to 32,767"),
        ({"target": 0}, "target must be 1 to"),
        ({"lease": SECOND}, "lease must be longer.*choose a longer lease"),
        ({"lease": 2 * DAY}, "lease must be at most.*renews it"),
    ],
)
def test_fields_out_of_bounds_are_refused(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidValue, match=words):
        next(PostgresStore().jobs.enqueue([a_job(**fields)]))


def test_key_that_is_not_text_is_refused() -> None:
    with pytest.raises(PayloadError, match="the key must not contain NUL"):
        next(PostgresStore().jobs.enqueue([a_job(key="a\0b")]))


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"key_for": timedelta.max}, id="key_for beyond an interval"),
        pytest.param({"key_for": timedelta(days=365 * 300_000)}, id="key_for beyond a timestamp"),
    ],
)
def test_a_time_to_keep_a_key_that_no_settle_could_add_is_refused(fields: dict[str, Any]) -> None:
    """Accepted, it would fail every settle and every rescue that meets the job."""
    with pytest.raises(InvalidValue):
        next(PostgresStore().jobs.enqueue([a_job(key="k", **fields)]))


async def test_what_is_just_within_the_limits_is_stored(db: Database) -> None:
    large = {"a": "ü" * ((MAX_PAYLOAD - len('{"a":""}')) // 2)}
    deep = nested(64)
    first = await enqueue(db, "x" * MAX_NAME, args=large, key="\U0001f600" * MAX_KEY)
    second = await enqueue(db, args={"d": deep, "n": [2**63 - 1, -(2**63), 0.1, 5e-324]})

    assert (await get(db, first)).args == large
    assert (await get(db, first)).key == "\U0001f600" * MAX_KEY
    args = (await get(db, second)).args
    assert args["d"] == deep
    assert args["n"] == [2**63 - 1, -(2**63), 0.1, 5e-324]
