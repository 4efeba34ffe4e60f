"""The schema by Django's migrations and by `tenure db migrate`: whichever comes second finds the
work done."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest
from django.core.management import call_command
from django.db import connection, connections
from django.db.migrations.exceptions import IrreversibleError
from django.db.migrations.loader import MigrationLoader

from support.django_project import as_django_says, default_database
from support.store import install
from tenure import admin
from tenure._store.postgres.schema import migrations
from tenure.errors import SchemaTooOld
from tests.contrib.django.acts import seen
from tests.contrib.django.sample import note

if TYPE_CHECKING:
    from collections.abc import Iterator

TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = 'tenure' ORDER BY 1"
RECORDED = "SELECT name FROM django_migrations WHERE app = 'tenure' ORDER BY 1"
ALL = [f"{migration.version:04}_{migration.slug}" for migration in migrations()]


@pytest.fixture
def fresh(empty_database: str) -> Iterator[str]:
    """An empty database that is Django's `default`."""
    with default_database(empty_database):
        yield empty_database


def migrate(*words: str, **options: Any) -> None:
    call_command("migrate", *words, verbosity=0, **options)


def test_each_of_tenures_migrations_has_one_of_djangos_by_the_same_number_and_name() -> None:
    ours = list(migrations())
    theirs = sorted(n for a, n in MigrationLoader(None).disk_migrations if a == "tenure")
    assert theirs == ALL
    for migration, name in zip(ours, theirs, strict=True):
        django_s = import_module(f"tenure.contrib.django.migrations.{name}").Migration
        assert django_s.operations[0].version == migration.version
        assert django_s.atomic is (migration.up.transaction and migration.down.transaction)


def test_nothing_is_left_for_tenure_after_djangos_migrate(fresh: str) -> None:
    migrate("tenure")
    with admin.connect(fresh) as verbs:
        assert verbs.schema.plan() == []
        assert verbs.schema.maintain().done == [], "the partitions were made with the migration"
    assert seen(fresh, RECORDED) == ALL


def test_nothing_is_left_for_django_after_tenures_migrate(fresh: str) -> None:
    install(fresh)
    before = seen(fresh, TABLES)
    migrate("tenure")
    assert seen(fresh, TABLES) == before
    assert seen(fresh, RECORDED) == ALL


def test_both_give_the_same_tables(fresh: str, databases: Any) -> None:
    migrate("tenure")
    other = databases.create()
    with admin.connect(other, check=False) as verbs:
        verbs.schema.migrate()
    assert seen(fresh, TABLES) == seen(other, TABLES)
    databases.drop(other)


def test_going_back_takes_the_tables_away_and_forward_brings_them_again(fresh: str) -> None:
    migrate("tenure")
    migrate("tenure", "zero")
    assert seen(fresh, TABLES) == ["schema_version"]
    assert seen(fresh, "SELECT version FROM tenure.schema_version") == []
    migrate("tenure")
    with admin.connect(fresh) as verbs:
        assert verbs.schema.status().fits


def test_going_back_after_tenure_did_finds_the_work_done(fresh: str) -> None:
    migrate("tenure")
    with admin.connect(fresh) as verbs:
        verbs.schema.migrate(to=0)
    migrate("tenure", "zero")
    assert seen(fresh, RECORDED) == []


def test_going_back_below_what_a_newer_release_made_is_refused(fresh: str) -> None:
    migrate("tenure")
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO tenure.schema_version (version, name, breaking, applied_at) "
            "VALUES (1000, 'newer', false, now())"
        )
    with pytest.raises(IrreversibleError, match=f"tenure db migrate --to {len(ALL)}"):
        migrate("tenure", "zero")
    assert "job" in seen(fresh, TABLES)


def test_a_schema_from_before_the_first_release_is_refused_with_what_to_do(fresh: str) -> None:
    install(fresh)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE tenure.schema_version SET name = '001_lease_store'")
    with pytest.raises(SchemaTooOld, match="drop it and migrate again: DROP SCHEMA tenure CASCADE"):
        migrate("tenure")
    assert seen(fresh, RECORDED) == []


def test_a_database_that_is_not_tenures_is_left_alone(fresh: str, databases: Any) -> None:
    other = databases.create()
    whole = connections.configure_settings({"default": {}, "other": as_django_says(other)})
    connections.settings["other"] = whole["other"]
    try:
        migrate("tenure", database="other")
        assert seen(other, TABLES) == []
        migrate("tenure", "zero", database="other")
    finally:
        connections["other"].close()
        del connections["other"], connections.settings["other"]
        databases.drop(other)


def test_the_sql_can_be_read_before_it_is_run(
    fresh: str, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("sqlmigrate", "tenure", "0001")
    assert "CREATE TABLE tenure.job (" in capsys.readouterr().out
    assert seen(fresh, TABLES) == []


def test_what_dumps_the_project_takes_no_jobs_along(
    fresh: str, capsys: pytest.CaptureFixture[str]
) -> None:
    migrate("tenure")
    note.enqueue()
    assert seen(fresh) != []
    call_command("dumpdata", "tenure")
    assert capsys.readouterr().out.strip() == "[]"


def test_the_models_ask_for_no_further_migration(fresh: str) -> None:
    call_command("makemigrations", check=True, dry_run=True, verbosity=0)
