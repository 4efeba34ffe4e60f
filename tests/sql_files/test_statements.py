"""How a file becomes a statement: its schema filled in, its parameters put in order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure._store.postgres.statements import (
    check_schema,
    in_schema,
    parse,
    statements,
    with_includes,
)
from tenure.errors import InvalidValue

TEXT = "-- $1 id, $2 now\n-- Reads.\nSELECT $1::bigint, $2::timestamptz FROM /*schema.*/job"


def test_parameters_go_in_the_order_of_the_first_line() -> None:
    statement = parse("read", TEXT, "tenure")
    assert statement.params == ("id", "now")
    assert statement.arguments({"now": "later", "id": 7}) == ["7", "later"]


@pytest.mark.parametrize("params", [{}, {"id": 1}, {"id": 1, "now": 2, "more": 3}])
def test_a_parameter_that_is_missing_or_unknown_is_a_defect(params: dict[str, object]) -> None:
    with pytest.raises(AssertionError, match="read takes"):
        parse("read", TEXT, "tenure").arguments(params)


def test_a_statement_without_parameters_takes_none() -> None:
    statement = parse("all", "-- All of it, for 5 $.\nSELECT 1", "tenure")
    assert statement.params == ()
    assert statement.arguments({}) == []


def test_the_schemas_name_is_filled_in_everywhere() -> None:
    assert in_schema("/*schema.*/job, /*schema.*/queue", "cell_2") == "cell_2.job, cell_2.queue"
    assert "/*schema.*/" not in "".join(s.text for s in statements("cell_2").values())


def test_an_include_is_replaced_by_the_lines_of_its_file_without_the_header() -> None:
    text = with_includes(
        "SELECT FROM job AS j\n    WHERE true\n        /*include job_filter*/\nLIMIT 1"
    )
    first, second, third, *_, last = text.splitlines()
    assert (first, second, last) == ("SELECT FROM job AS j", "    WHERE true", "LIMIT 1")
    assert third == "        AND (j.queue = ANY ($1::text[]) OR $1 IS NULL)"
    assert "--" not in text
    assert "include" not in text


def test_an_include_without_a_file_is_a_defect() -> None:
    with pytest.raises(FileNotFoundError):
        parse("read", "-- Reads.\nSELECT 1\n/*include nothing*/\n", "tenure")


@pytest.mark.parametrize("name", ["tenure", "_t", "cell_2", "a" * 48])
def test_a_schema_that_needs_no_quotes_is_accepted(name: str) -> None:
    assert check_schema(name) == name


@pytest.mark.parametrize(
    "name", ["", "Tenure", "2cells", "a-b", "a.b", 'a"b', "a b", "a\n", "ä", "a" * 49]
)
def test_any_other_schema_is_refused_with_what_may_be(name: str) -> None:
    with pytest.raises(
        InvalidValue, match="schema must be 1 to 48 lower-case letters, digits and _"
    ):
        check_schema(name)


@given(st.text(max_size=60))
def test_an_accepted_schema_can_stand_in_sql_as_it_is(name: str) -> None:
    try:
        check_schema(name)
    except InvalidValue:
        return
    assert name.isidentifier()
    assert name.isascii()
    assert name == name.lower()
