"""schema.sql is the sum of the migrations, and comparing the two sees every difference."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
import pytest

from tenure._store.postgres.connections import connect
from tenure._store.postgres.schema import migrations
from tenure._store.postgres.sessions import Session
from tenure._store.postgres.statements import in_schema
from tenure._store.postgres.store import PostgresStore
from tests.migrations.catalog import catalog, snapshot

if TYPE_CHECKING:
    from support.databases import Databases


def migrate(url: str, schema: str = "tenure") -> None:
    with connect(url) as connection:
        Session(connection, schema=schema).run(PostgresStore(schema).schema.migrate())


def execute(url: str, text: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(text.encode())


def draw(url: str) -> None:
    """Make the schema from the snapshot alone."""
    execute(url, "CREATE SCHEMA tenure")
    execute(url, snapshot())


def test_the_snapshot_equals_the_sum_of_the_migrations(
    databases: Databases, empty_database: str
) -> None:
    drawn = databases.create()
    migrate(empty_database)
    draw(drawn)
    try:
        assert catalog(drawn) == catalog(empty_database)
    finally:
        databases.drop(drawn)


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE tenure.job ADD COLUMN extra text",
        "ALTER TABLE tenure.job ALTER COLUMN target TYPE bigint",
        "ALTER TABLE tenure.job ALTER COLUMN task DROP NOT NULL",
        "ALTER TABLE tenure.job ALTER COLUMN losses SET DEFAULT 1",
        "ALTER TABLE tenure.job ALTER COLUMN losses DROP DEFAULT",
        "ALTER TABLE tenure.job DROP CONSTRAINT job_priority_check",
        "ALTER TABLE tenure.job SET (fillfactor = 84)",
        "ALTER TABLE tenure.job RESET (autovacuum_vacuum_threshold)",
        "ALTER TABLE tenure.job SET UNLOGGED",
        "ALTER TABLE tenure.audit ALTER COLUMN id DROP IDENTITY",
        "ALTER INDEX tenure.job_lane_idx RENAME TO job_line_idx",
        "DROP INDEX tenure.job_limited_idx",
        "CREATE INDEX ON tenure.job (task)",
        "ALTER SEQUENCE tenure.job_id_seq CACHE 20",
        "ALTER SEQUENCE tenure.job_id_seq OWNED BY NONE",
        "DROP TABLE tenure.attempt",
        "CREATE TABLE tenure.extra ()",
        "CREATE FUNCTION tenure.f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "ALTER FUNCTION tenure.enqueue SECURITY DEFINER",
        "GRANT EXECUTE ON FUNCTION tenure.enqueue TO PUBLIC",
        "DROP FUNCTION tenure.enqueue",
    ],
)
def test_a_difference_is_seen(empty_database: str, change: str) -> None:
    draw(empty_database)
    before = catalog(empty_database)
    execute(empty_database, change)
    assert catalog(empty_database) != before


def test_the_order_of_columns_is_seen(empty_database: str) -> None:
    execute(empty_database, "CREATE SCHEMA tenure; CREATE SCHEMA other")
    execute(empty_database, "CREATE TABLE tenure.t (a int, b int)")
    before = catalog(empty_database)
    execute(empty_database, "DROP TABLE tenure.t; CREATE TABLE tenure.t (b int, a int)")
    assert catalog(empty_database) != before


def test_the_way_a_table_is_partitioned_is_seen(empty_database: str) -> None:
    execute(empty_database, "CREATE SCHEMA tenure")
    execute(empty_database, "CREATE TABLE tenure.t (a int, b int) PARTITION BY RANGE (a)")
    before = catalog(empty_database)
    execute(empty_database, "DROP TABLE tenure.t")
    execute(empty_database, "CREATE TABLE tenure.t (a int, b int) PARTITION BY RANGE (b)")
    assert catalog(empty_database) != before


def test_there_is_one_function_and_no_trigger(empty_database: str) -> None:
    """It runs with the rights of its caller, with a search path of its own, and not for PUBLIC."""
    migrate(empty_database)
    lines = catalog(empty_database)
    [function] = [line for line in lines if line.startswith(("function", "trigger"))]
    assert function.startswith("function CREATE OR REPLACE FUNCTION tenure.enqueue(task text, ")
    assert "SECURITY DEFINER" not in function
    assert "SET search_path TO 'pg_catalog', 'pg_temp'" in function
    assert function.endswith("{postgres=X/postgres}")


def test_making_the_function_again_changes_nothing(empty_database: str) -> None:
    """Its grants stay."""
    migrate(empty_database)
    execute(empty_database, "GRANT EXECUTE ON FUNCTION tenure.enqueue TO pg_monitor")
    before = catalog(empty_database)
    [script] = [each.up.text for each in migrations() if each.slug == "sql_enqueue"]
    execute(empty_database, in_schema(script, "tenure"))
    assert catalog(empty_database) == before


def test_a_schema_of_another_name_is_the_same_schema(empty_database: str) -> None:
    migrate(empty_database)
    migrate(empty_database, "cell_2")
    other = [line.replace("cell_2.", "tenure.") for line in catalog(empty_database, "cell_2")]
    assert sorted(other) == catalog(empty_database)


def test_the_snapshot_names_no_schema_of_its_own() -> None:
    assert "tenure." not in snapshot("cell_2")
    assert snapshot("cell_2").count("cell_2.") > 20
