"""Every hot statement is planned by its index on our own connections, whatever statistics say."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tenure._store.postgres.connections import connect
from tests.query_plans.explained import TINY, explain
from tests.query_plans.questions import FREEZING, OWN

if TYPE_CHECKING:
    from tests.query_plans.explained import Node, Plan

HOT = [
    "claim",
    "claim_limited",
    "confirm_claim",
    "renew",
    "busy_leases",
    "mark_awaited",
    "complete",
    "settle, to release",
    "rescue",
    "progress",
    "cancel",
    "revoke",
    "hold",
    "resume",
    "discard",
    "move",
    "lock_editable",
    "edit",
    "delete",
]
every_case = pytest.mark.parametrize("case", OWN)


def plan(url: str, case: str) -> Plan:
    with connect(url) as connection:
        return explain(connection, OWN[case])


def _reads(node: Node, table: str) -> bool:
    """Whether this node or one below it reads the table."""
    return node.table == table or any(_reads(below, table) for below in node.below)


@every_case
def test_on_the_first_day_it_uses_its_index(empty: str, case: str) -> None:
    assert plan(empty, case).faults() == []


@every_case
def test_with_full_tables_it_uses_its_index(full: str, case: str) -> None:
    assert plan(full, case).faults() == []


@every_case
def test_with_ten_million_jobs_it_uses_its_index(huge: str, case: str) -> None:
    assert plan(huge, case).faults() == []


@every_case
def test_with_statistics_of_a_quiet_hour_no_primary_key_is_read_from_end_to_end(
    believed: str, case: str
) -> None:
    """Found by `just prove faults`: to release 336 jobs took six seconds beside 6,714 live ones."""
    whole = [node for node in plan(believed, case).nodes() if node.is_whole]
    assert [node.fields["Index Name"] for node in whole if node.table not in TINY] == []


@pytest.mark.parametrize("case", HOT)
def test_with_statistics_of_an_idle_moment_no_index_is_read_from_end_to_end(
    emptied: str, case: str
) -> None:
    """Analysed while empty, under a pinned horizon: 172 ms to claim and settle 100 jobs."""
    found = plan(emptied, case)
    for table in ("job", "job_key", "job_failed"):
        for node in found.of(table):
            # What is limited and running is counted whole; that index holds nothing else.
            if node.indexes and node.indexes != {"job_limited_idx"}:
                assert "Index Cond" in node.fields, (table, node.fields)


@pytest.mark.parametrize("case", ["claim", "claim_limited"])
def test_a_lane_is_entered_at_its_floor_and_read_in_its_order(
    empty: str, full: str, case: str
) -> None:
    """Shows R10."""
    for url in (empty, full):
        found = plan(url, case)
        [lane] = [node for node in found.of("job") if node.indexes == {"job_lane_idx"}]
        condition = lane.fields["Index Cond"]
        assert "queue = " in condition
        assert "priority = " in condition
        assert "run_at <= " in condition
        assert re.search(r"ROW\(\w+\.run_at, \w+\.id\) > ROW\(", condition)
        assert not any(node.kind == "Sort" and lane in node.below for node in found.nodes())


@pytest.mark.parametrize("case", FREEZING)
def test_members_are_read_in_their_order_so_that_the_bound_ends_the_reading(
    full: str, huge: str, case: str
) -> None:
    """Shows R15. No sort of a table, and no second look at it."""
    table = {"freeze_failed": "job_failed", "freeze_live": "job", "freeze_archive": "job_archive"}
    for url in (full, huge):
        with connect(url) as connection:
            found = explain(connection, FREEZING[case])
        read = table[FREEZING[case].name]
        scans = found.of(read)
        assert scans
        assert {name for scan in scans for name in scan.indexes} == {f"{read}_pkey"}
        assert not [n for n in found.nodes() if n.kind == "Sort" and _reads(n, read)]


def test_the_next_chunk_is_read_from_the_place_of_the_last_one_on(empty: str, full: str) -> None:
    for url in (empty, full):
        [scan] = plan(url, "operation_items").of("operation_item")
        assert "place > " in scan.fields["Index Cond"]
        assert "operation_id = " in scan.fields["Index Cond"]


@pytest.mark.parametrize(
    "case",
    [
        *("list_live", "list_failed", "archive_page_end", "list_archive", "list_audit"),
        *("search_queued", "search_queued, by errors", "search_failed", "search_archive"),
    ],
)
def test_a_list_is_read_backwards_without_a_sort(full: str, case: str) -> None:
    found = plan(full, case)
    directions = {node.fields.get("Scan Direction") for node in found.nodes() if node.indexes}
    assert directions == {"Backward"}
    assert not any(node.kind == "Sort" for node in found.nodes())


def test_what_ended_since_the_last_fold_is_read_from_its_end(full: str) -> None:
    """A limit without an order would have all attempts of a day read, if most are expected."""
    scans = [
        node for node in plan(full, "overview_counts").nodes() if "attempt_" in str(node.fields)
    ]
    directions = {node.fields["Scan Direction"] for node in scans if node.indexes}
    assert directions == {"Backward"}
    assert not any(node.kind == "Seq Scan" for node in scans)


@pytest.mark.parametrize("case", ["search_queued", "search_running", "search_failed"])
def test_a_search_reads_no_more_than_its_window(empty: str, full: str, case: str) -> None:
    """The window is a limit right above the table, whatever the selector says."""
    table = "job_failed" if case == "search_failed" else "job"
    for url in (empty, full):
        found = plan(url, case)
        limits = [below for node in found.nodes() if node.kind == "Limit" for below in node.below]
        assert all(scan in limits for scan in found.of(table))


def test_the_archive_of_one_day_reads_that_days_partition_alone(full: str) -> None:
    """The day is a parameter, so the others are left out when the plan is started."""
    found = plan(full, "list_archive")
    assert len(found.of("job_archive")) == 1


@pytest.mark.parametrize("case", ["rescue", "rescue, but what is kept", "rescue, of queues"])
def test_a_sweep_reads_expiries_between_its_floor_and_now(empty: str, full: str, case: str) -> None:
    """Shows R6. Whether it waited for the table is judged once, before it reads any."""
    for url in (empty, full):
        found = plan(url, case)
        [scan] = [n for n in found.of("job") if n.indexes == {"job_expiry_idx"}]
        assert "lease_expires_at > " in scan.fields["Index Cond"]
        assert "lease_expires_at <= " in scan.fields["Index Cond"]
        assert "clock_timestamp" not in str(scan.fields.get("Filter"))
        [gate] = [n for n in found.nodes() if "One-Time Filter" in n.fields]
        assert gate.kind == "Result"
        assert scan in gate.below
        outputs = [
            str(n.fields["Output"])
            for n in found.nodes()
            if n.fields.get("Parent Relationship") == "InitPlan" and "Output" in n.fields
        ]
        assert [o for o in outputs if "clock_timestamp() - COALESCE" in o]


@pytest.mark.parametrize("case", ["settle", "settle, deaths", "rescue"])
def test_the_attempts_of_a_dead_letter_are_found_by_its_id(
    empty: str, full: str, case: str
) -> None:
    """Shows R16. In each day by the primary key, the last of them first."""
    for url in (empty, full):
        scans = plan(url, case).of("attempt")
        assert scans
        for scan in scans:
            assert scan.indexes == {"attempt_pkey"}
            assert "job_id = " in scan.fields["Index Cond"]


@pytest.mark.parametrize("case", ["lock_due_schedules", "lock_due_schedules, above a floor"])
def test_due_schedules_are_read_in_the_order_of_their_time(
    empty: str, full: str, case: str
) -> None:
    """Shows R27. What fell due just now is found without reading what is behind it."""
    for url in (empty, full):
        found = plan(url, case)
        scans = [n for n in found.of("schedule") if n.indexes == {"schedule_due_idx"}]
        assert len(scans) == 2
        for scan in scans:
            assert "next_at > " in scan.fields["Index Cond"]
            assert "next_at <= " in scan.fields["Index Cond"]
        assert not any(node.kind == "Sort" for node in found.nodes())


@pytest.mark.parametrize(
    "case", ["complete", "renew", "confirm_claim", "settle", "settle, to release"]
)
def test_a_batch_finds_its_jobs_one_by_one_by_their_ids(empty: str, full: str, case: str) -> None:
    """A hash or a merge would read the whole table, and lock in an order of its own."""
    for url in (empty, full):
        found = plan(url, case)
        for node in found.of("job"):
            assert (node.kind, node.indexes) == ("Index Scan", {"job_pkey"})
            assert "id = " in node.fields["Index Cond"]
        assert not any(node.kind == "Merge Join" for node in found.nodes())


def test_no_count_of_a_queue_reads_past_its_bound(empty: str, full: str) -> None:
    """Each is a limited scan within one queue, and within one lane where lanes hold more."""
    for url in (empty, full):
        found = plan(url, "queue_depths")
        scans = [*found.of("job"), *found.of("job_failed")]
        assert len(scans) == 5
        for scan in scans:
            assert "queue = " in scan.fields["Index Cond"]
            if scan.indexes == {"job_lane_idx"}:
                for part in ("priority = ", "returned = ", "run_at "):
                    assert part in scan.fields["Index Cond"]
        limits = [below for node in found.nodes() if node.kind == "Limit" for below in node.below]
        assert all(scan in limits for scan in scans)


def test_what_is_before_a_job_is_read_up_to_its_own_place(empty: str, full: str) -> None:
    for url in (empty, full):
        [scan] = [n for n in plan(url, "explain_job").of("job") if n.indexes == {"job_lane_idx"}]
        assert re.search(r"ROW\(\w+\.run_at, \w+\.id\) < ROW\(", scan.fields["Index Cond"])


def test_groups_of_dead_letters_are_found_without_reading_what_is_in_them(
    empty: str, full: str
) -> None:
    """Every read of them is limited, and enters its index at a task."""
    for url in (empty, full):
        found = plan(url, "failed_groups")
        assert not any(n.kind.endswith("Sort") and n.below[0].table for n in found.nodes())
        limits = [below for node in found.nodes() if node.kind == "Limit" for below in node.below]
        below = [*limits, *(deeper for node in limits for deeper in node.below)]
        for scan in found.of("job_failed"):
            assert "task " in scan.fields["Index Cond"]
            assert scan in below


def test_a_minute_is_folded_from_its_own_rows(empty: str, full: str) -> None:
    for url in (empty, full):
        for scan in plan(url, "rollup_minute").of("attempt"):
            assert "ended_at >= " in scan.fields["Index Cond"]
            assert "ended_at < " in scan.fields["Index Cond"]
