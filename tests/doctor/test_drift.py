"""What is missing from the schema is named, and the SQL for it makes it as it was."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tenure._store.postgres.schema import expected_schema
from tenure._store.postgres.store import PostgresStore
from tests.migrations.catalog import catalog

if TYPE_CHECKING:
    from tests.doctor.conftest import Bed

DRAWN = expected_schema("tenure")
CONSTRAINTS = [(t, name) for t, table in DRAWN.tables.items() for name in table.constraints]


def fixed(bed: Bed) -> list[str]:
    """What was missing, after it was made again."""
    admin = bed.admin()
    found = admin._run(admin._store.inspection.schema_drift())
    for each in found:
        bed.sql(*each.sql.split("; "))
    assert not admin._run(admin._store.inspection.schema_drift())
    return [each.what for each in found]


def test_all_that_is_in_a_schema_is_drawn(bed: Bed) -> None:
    admin = bed.admin()
    rows = admin._run(PostgresStore().inspection._send("actual_schema", schema="tenure"))
    there = {(row["kind"], row["of"], row["name"]) for row in rows}
    # Those of columns have names since PostgreSQL 18.
    there = {each for each in there if not each[2].endswith("_not_null")}
    drawn = {("table", name, name) for name in DRAWN.tables}
    drawn |= {("column", t, name) for t, table in DRAWN.tables.items() for name in table.columns}
    drawn |= {("constraint", *each) for each in CONSTRAINTS}
    # A primary key is an index, too.
    drawn |= {("index", t, name) for t, name in CONSTRAINTS if name.endswith("_pkey")}
    drawn |= {("index", index.table, name) for name, index in DRAWN.indexes.items()}
    sequences = {each for each in there if each[0] == "sequence"}
    assert there - sequences == drawn
    assert set(DRAWN.sequences) <= {name for _, _, name in sequences}


def test_every_index_and_constraint_is_made_as_it_was(bed: Bed) -> None:
    before = catalog(bed.url)
    for name, index in DRAWN.indexes.items():
        bed.sql(f"DROP INDEX tenure.{name}")
        assert fixed(bed) == [f"index {name} of table {index.table} is missing"]
    for table, name in CONSTRAINTS:
        bed.sql(f"ALTER TABLE tenure.{table} DROP CONSTRAINT {name}")
        assert f"constraint {name} of table {table} is missing" in fixed(bed)
    assert catalog(bed.url) == before


FUNCTION = DRAWN.functions["enqueue"]


@pytest.mark.parametrize(
    "change",
    [
        "DROP FUNCTION tenure.enqueue",
        "ALTER FUNCTION tenure.enqueue SECURITY DEFINER",
        "ALTER FUNCTION tenure.enqueue RESET search_path",
        "ALTER FUNCTION tenure.enqueue SET search_path = public",
        "ALTER FUNCTION tenure.enqueue STRICT",
        "ALTER FUNCTION tenure.enqueue STABLE",
        FUNCTION.sql.replace("BETWEEN 0 AND 9", "BETWEEN 0 AND 99"),
        FUNCTION.sql.replace("held boolean DEFAULT false", "held boolean DEFAULT true"),
    ],
)
def test_a_function_that_is_missing_or_changed_is_found(bed: Bed, change: str) -> None:
    assert change not in (FUNCTION.sql, "")
    bed.sql(change)
    admin = bed.admin()
    [found] = admin._run(admin._store.inspection.schema_drift())
    if change.startswith("DROP"):
        assert (found.fault, found.what) == ("function_missing", "function enqueue is missing")
    else:
        assert (found.fault, found.what) == (
            "function_changed",
            "function enqueue differs from this release's",
        )


def test_the_printed_function_is_made_as_it_was(bed: Bed) -> None:
    """Without comments and line breaks, which are not compared; and not for PUBLIC."""
    bed.sql("DROP FUNCTION tenure.enqueue")
    admin = bed.admin()
    [found] = admin._run(admin._store.inspection.schema_drift())
    bed.sql(found.sql)
    assert not admin._run(admin._store.inspection.schema_drift())
    assert not admin._run(admin._store.inspection.excess_rights())
    bed.sql("SELECT tenure.enqueue('work', key => 'k', delay => '1 day')")
    assert "tenure." not in expected_schema("cell_2").functions["enqueue"].sql


@pytest.mark.parametrize("table", [name for name in DRAWN.tables if name != "schema_version"])
def test_every_table_is_made_as_it_was(bed: Bed, table: str) -> None:
    before = catalog(bed.url)
    bed.sql(f"DROP TABLE tenure.{table}")
    assert f"table {table} is missing" in fixed(bed)
    bed.admin().schema.maintain()
    assert catalog(bed.url) == before
