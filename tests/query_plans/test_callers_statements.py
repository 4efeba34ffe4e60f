"""What runs in a caller's transaction is planned by its index with the caller's settings too."""

from __future__ import annotations

import psycopg
import pytest

from tests.query_plans.explained import explain
from tests.query_plans.questions import CALLERS

every_case = pytest.mark.parametrize("case", CALLERS)
# A driver prepares what it sends often, and the server then plans it once for all values.
every_mode = pytest.mark.parametrize("mode", ["auto", "force_custom_plan", "force_generic_plan"])


@every_case
@every_mode
def test_with_a_large_table_it_uses_its_index(large: str, case: str, mode: str) -> None:
    """Shows R20."""
    with psycopg.connect(large, autocommit=True) as connection:
        connection.execute(f"SET plan_cache_mode = {mode}".encode())
        plan = explain(connection, CALLERS[case])
    assert plan.faults() == []


@every_case
@every_mode
def test_with_ten_million_jobs_it_uses_its_index(huge: str, case: str, mode: str) -> None:
    with psycopg.connect(huge, autocommit=True) as connection:
        connection.execute(f"SET plan_cache_mode = {mode}".encode())
        plan = explain(connection, CALLERS[case])
    assert plan.faults() == []


@every_case
@every_mode
def test_it_touches_one_job_and_not_a_range(large: str, case: str, mode: str) -> None:
    with psycopg.connect(large, autocommit=True) as connection:
        connection.execute(f"SET plan_cache_mode = {mode}".encode())
        plan = explain(connection, CALLERS[case])
    for node in plan.of("job"):
        assert node.indexes == {"job_pkey"}
        assert "id = " in node.fields["Index Cond"]
