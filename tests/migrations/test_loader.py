"""Which migrations a directory has, what their headers say, and which directories are refused."""

from __future__ import annotations

import re

import pytest

from tenure._store.migrations import load
from tenure._store.postgres.schema import migrations
from tests.migrations.steps import FIXTURES, STEPS


def test_migrations_are_loaded_in_order_and_other_files_left_alone() -> None:
    assert [m.version for m in STEPS] == [1, 2, 3]
    assert [m.name for m in STEPS] == ["001_thing", "002_thing_index", "003_thing_name"]


def test_the_header_says_what_is_special() -> None:
    assert [m.up.transaction for m in STEPS] == [True, False, True]
    assert [m.down.transaction for m in STEPS] == [True, False, True]
    assert [m.up.breaking for m in STEPS] == [False, False, True]
    assert [m.down.breaking for m in STEPS] == [True, False, False]


@pytest.mark.parametrize("directory", ["gap", "double", "from_two"])
def test_versions_that_are_not_one_two_three_are_a_defect(directory: str) -> None:
    with pytest.raises(AssertionError, match=r"not numbered 1, 2, 3 …: .*00\d_thing"):
        load(FIXTURES / directory)


@pytest.mark.parametrize(
    ("directory", "missing"),
    [("missing_down", "001_thing.down.sql"), ("missing_up", "001_thing.up.sql")],
)
def test_a_migration_without_both_ways_is_a_defect_that_names_the_file(
    directory: str, missing: str
) -> None:
    with pytest.raises(AssertionError, match=missing):
        load(FIXTURES / directory)


def test_this_releases_migrations_load_and_go_both_ways() -> None:
    known = migrations()
    assert len(known) >= 1
    assert all(m.up.text.strip() and m.down.text.strip() for m in known)


def test_this_releases_migrations_name_no_schema_of_their_own() -> None:
    for migration in migrations():
        for script in (migration.up, migration.down):
            # The task and the queue of notices have the same name in every schema.
            assert "tenure." not in re.sub(r"'tenure\.notices?'", "", script.text)
            assert "/*schema.*/" in script.text
