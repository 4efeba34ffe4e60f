"""Python values as PostgreSQL's text input: exact, and read back as what they were."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta, timezone
from uuid import UUID

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tenure._model.job import State
from tenure._store.postgres.statements import Jsonb, interval, literal

plain_text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))
in_database = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        (True, "t"),
        (False, "f"),
        (7, "7"),
        (-(2**63), "-9223372036854775808"),
        ("a'b", "a'b"),
        (State.QUEUED, "queued"),
        (UUID(int=10), "00000000-0000-0000-0000-00000000000a"),
        (date(2030, 1, 2), "2030-01-02"),
        (datetime(2030, 1, 2, 3, tzinfo=UTC), "2030-01-02T03:00:00+00:00"),
        (timedelta(seconds=1.5), "1500000 microseconds"),
        (Jsonb([1, "ä"]), '[1, "ä"]'),
        (Jsonb(None), "null"),
        ([], "{}"),
        ([1, None, -3], "{1,NULL,-3}"),
        ((True, False), '{"t","f"}'),
        (["a", None, "", "NULL"], '{"a",NULL,"","NULL"}'),
        (['say "hi"', "back\\slash", "{,}"], r'{"say \"hi\"","back\\slash","{,}"}'),
        ([State.FAILED], '{"failed"}'),
        ([Jsonb({"a": 1}), Jsonb(None)], r'{"{\"a\": 1}","null"}'),
    ],
)
def test_a_value_is_written_as_its_type_is_read(value: object, text: str | None) -> None:
    assert literal(value) == text


@pytest.mark.parametrize("value", [1.5, b"x", {"a": 1}, {1}, object()])
def test_a_value_that_no_statement_takes_is_a_defect(value: object) -> None:
    with pytest.raises(TypeError, match=f"no literal for a {type(value).__name__}"):
        literal(value)


@given(st.timedeltas())
def test_a_duration_is_exact_to_the_microsecond(value: timedelta) -> None:
    number, _, unit = interval(value).partition(" ")
    assert unit == "microseconds"
    assert timedelta(microseconds=int(number)) == value


@in_database
@given(values=st.lists(st.none() | plain_text, max_size=8))
def test_an_array_of_any_text_is_read_back(cluster_connection: object, values: list[str]) -> None:
    assert read(cluster_connection, "text[]", values) == values


@in_database
@given(values=st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), max_size=8))
def test_an_array_of_any_integers_is_read_back(
    cluster_connection: object, values: list[int]
) -> None:
    assert read(cluster_connection, "bigint[]", values) == values


@in_database
@given(
    value=st.datetimes(
        datetime(1, 1, 2),  # noqa: DTZ001 - Hypothesis attaches the zone itself
        datetime(9999, 12, 30),  # noqa: DTZ001 - as above
        timezones=st.sampled_from([UTC, timezone(timedelta(hours=5, minutes=45))]),
    )
)
def test_any_instant_is_read_back(cluster_connection: object, value: datetime) -> None:
    assert read(cluster_connection, "timestamptz", value) == value


@in_database
@given(value=st.timedeltas(timedelta(days=-36_500), timedelta(days=36_500)))
def test_any_duration_of_a_century_is_read_back(
    cluster_connection: object, value: timedelta
) -> None:
    assert read(cluster_connection, "interval", value) == value


@in_database
@given(
    value=st.recursive(
        st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | plain_text,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(plain_text, inner, max_size=3),
        max_leaves=10,
    )
)
def test_any_json_is_read_back(cluster_connection: object, value: object) -> None:
    read_back = read(cluster_connection, "jsonb[]", [Jsonb(value), None])
    assert isinstance(read_back, list)
    assert json.dumps(read_back[0], sort_keys=True) == json.dumps(value, sort_keys=True)
    assert read_back[1] is None


def read(connection: object, kind: str, value: object) -> object:
    """What the server makes of the literal."""
    assert isinstance(connection, psycopg.Connection)
    cursor = psycopg.RawCursor(connection)
    row = cursor.execute(f"SELECT $1::{kind}".encode(), [literal(value)]).fetchone()
    assert row is not None
    return row[0]
