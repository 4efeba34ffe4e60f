"""The guards themselves: each fails when what it guards is gone."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import psycopg
import pytest

from tenure._store.postgres.connections import connect
from tenure._store.postgres.statements import DEFAULT_SCHEMA, statements
from tests.query_plans.explained import Node, Plan, explain, named_indexes
from tests.query_plans.questions import CALLERS, OWN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.databases import Databases

# They name a table only to look it or its partitions up in the catalog.
CATALOG = {
    "archive_days",
    "partition_stats",
    "newest_partition",
    "vacuum_issues",
    "plan_partitions",
    "tables",
}
# They read a table from its beginning on, and are held to that in test_own_statements.
FREEZES = {"freeze_archive", "freeze_failed", "freeze_live"}
# An erasure sends each once, at its start: they may read whole tables, within a minute.
ERASURE_STARTS = {
    "freeze_erasure",
    "erasure_rows",
    "erase_schedules",
    "erase_answers",
    "erase_keys",
    "erase_audit",
    "naming_operations",
    "mask_operation",
}


@pytest.fixture
def scratch(databases: Databases, full: str) -> Iterator[str]:
    """A copy of the full database, to be spoilt."""
    url = databases.create("tenure_full")
    yield url
    databases.drop(url)


def spoil(url: str, statement: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement.encode())


@pytest.mark.parametrize(
    ("index", "cases"),
    [
        ("job_lane_idx", ["claim", "claim_limited", "next_due", "queue_names"]),
        ("job_expiry_idx", ["rescue", "mark_limited"]),
        ("job_limited_idx", ["claim_limited"]),
        ("job_key_expires_idx", ["prune_keys"]),
        ("job_failed_ended_idx", ["prune_failed"]),
        ("job_failed_group_idx", ["failed_groups"]),
        ("job_failed_signature_idx", ["failed_groups"]),
        ("job_failed_queue_idx", ["queue_depths", "known_queues"]),
        ("job_held_idx", ["queue_depths", "known_queues"]),
        ("attempt_ended_at_idx", ["rollup_minute"]),
        ("audit_target_idx", ["list_audit"]),
    ],
)
def test_a_statement_whose_index_is_dropped_is_reported(
    scratch: str, index: str, cases: list[str]
) -> None:
    spoil(scratch, f"DROP INDEX tenure.{index}")
    with connect(scratch) as connection:
        for case in cases:
            assert f"{index} is not used" in explain(connection, OWN[case]).faults()


@pytest.mark.parametrize(
    ("table", "cases"),
    [
        ("job", ["renew", "progress", "settle", "complete", "guard", "check_lease", "get"]),
        ("job_key", ["settle", "rescue", "await_key", "cancel"]),
        ("job_item", ["items"]),
        ("job_failed", ["list_failed", "retry", "discard"]),
    ],
)
def test_a_statement_whose_primary_key_is_dropped_is_reported(
    scratch: str, table: str, cases: list[str]
) -> None:
    spoil(scratch, f"ALTER TABLE tenure.{table} DROP CONSTRAINT {table}_pkey")
    with connect(scratch) as connection:
        for case in cases:
            faults = explain(connection, OWN[case]).faults()
            scan, named = f"sequential scan of {table}", f"{table}_pkey is not used"
            assert {scan, named} & set(faults)


def test_a_callers_statement_without_its_index_is_a_sequential_scan(scratch: str) -> None:
    spoil(scratch, "ALTER TABLE tenure.job DROP CONSTRAINT job_pkey")
    with psycopg.connect(scratch, autocommit=True) as connection:
        faults = explain(connection, CALLERS["guard"]).faults()
    assert "sequential scan of job" in faults


def test_an_index_that_the_header_does_not_name_is_reported(scratch: str) -> None:
    """The planner takes a more tempting one where there is one."""
    spoil(scratch, "ALTER TABLE tenure.job DROP CONSTRAINT job_pkey")
    spoil(scratch, "CREATE INDEX job_tempting_idx ON tenure.job (id)")
    with connect(scratch) as connection:
        faults = explain(connection, OWN["guard"]).faults()
    assert "job_tempting_idx is used, and not named in the header" in faults


def test_our_settings_are_what_keeps_small_tables_from_sequential_scans(empty: str) -> None:
    """Shows that the guards see the difference: default settings, no statistics."""
    with psycopg.connect(empty, autocommit=True) as connection:
        found = {case: explain(connection, query).faults() for case, query in OWN.items()}
    assert any("sequential scan" in fault for faults in found.values() for fault in faults)
    assert any("Bitmap" in fault for faults in found.values() for fault in faults)


def test_a_plan_that_would_be_compiled_is_reported(full: str) -> None:
    with psycopg.connect(full, autocommit=True) as connection:
        connection.execute("SET jit = on")
        connection.execute("SET jit_above_cost = 1")
        assert "JIT compiles it" in explain(connection, OWN["claim"]).faults()
        connection.execute("SET jit = off")
        assert "JIT compiles it" not in explain(connection, OWN["claim"]).faults()


def test_a_scan_deep_in_a_plan_is_found() -> None:
    scan = {"Node Type": "Seq Scan", "Schema": "tenure", "Relation Name": "attempt_20300101"}
    fields = {"Node Type": "Limit", "Plans": [{"Node Type": "Append", "Plans": [scan]}]}
    faults = Plan("queues", Node(fields), compiled=False).faults()
    assert faults == ["sequential scan of attempt"]


def test_a_primary_key_that_is_read_from_end_to_end_is_reported() -> None:
    """A disabled sequential scan comes back in this dress."""
    scan = {"Node Type": "Index Scan", "Schema": "tenure", "Relation Name": "job"}
    whole = Plan("queues", Node(scan | {"Index Name": "job_pkey"}), compiled=False)
    assert whole.faults() == ["scan of job by the whole of its primary key"]
    by_id = scan | {"Index Name": "job_pkey", "Index Cond": "(id = 1)"}
    assert Plan("queues", Node(by_id), compiled=False).faults() == []


def test_every_statement_over_a_table_that_grows_is_guarded() -> None:
    guarded = {query.name for query in OWN.values()}
    growing = re.compile(
        r"tenure\.(job|job_archive|job_failed|job_item|job_key|attempt|rollup_minute)\b"
    )
    for name, statement in statements(DEFAULT_SCHEMA).items():
        if growing.search(statement.text) and name not in CATALOG | FREEZES | ERASURE_STARTS:
            assert name in guarded


def test_every_index_that_a_header_names_is_one_that_there_is(full: str) -> None:
    with psycopg.connect(full) as connection:
        rows = connection.execute("SELECT indexname FROM pg_indexes WHERE schemaname = 'tenure'")
        there = {row[0] for row in rows}
    for query in OWN.values():
        assert named_indexes(query.name) <= there
