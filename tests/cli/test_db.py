"""`tenure db`: from an empty database to one that fits, and back if that is meant."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg

from tenure._store.postgres.schema import migrations
from tenure.cli.errors import Exit

if TYPE_CHECKING:
    from support.store import Database
    from tests.cli.conftest import Command

OURS = len(migrations())
UP = [f"{migration.name} up" for migration in migrations()]
DOWN = [f"{migration.name} down" for migration in reversed(migrations())]


def test_an_empty_database_is_migrated_and_then_fits(bare: Command) -> None:
    before = bare("db", "status", "--json")
    assert before.code == Exit.SCHEMA
    assert (before.json["version"], before.json["fits"]) == (0, False)

    rehearsed = bare("db", "migrate", "--dry-run")
    assert (rehearsed.code, rehearsed.out.splitlines()) == (Exit.DONE, UP)
    assert bare("db", "status").code == Exit.SCHEMA

    done = bare("db", "migrate")
    assert (done.code, done.out.splitlines()) == (Exit.DONE, UP)
    assert f"at version {OURS}" in done.err

    again = bare("db", "migrate", "--json")
    assert again.json == {"version": OURS, "dry_run": False, "migrations": []}
    after = bare("db", "status")
    assert after.code == Exit.DONE
    assert "yes" in after.out


def test_going_back_is_confirmed_first(tenure: Command) -> None:
    refused = tenure("db", "migrate", "--to", 0)
    assert refused.code == Exit.USAGE
    assert "--yes" in refused.error[2]
    assert tenure("db", "status").code == Exit.DONE

    gone = tenure("db", "migrate", "--to", 0, "--yes")
    assert (gone.code, gone.out.splitlines()) == (Exit.DONE, DOWN)
    assert tenure("db", "status").code == Exit.SCHEMA


def test_a_version_that_is_not_known_is_a_mistake_of_usage(bare: Command) -> None:
    wrong = bare("db", "migrate", "--to", OURS + 1)
    assert wrong.code == Exit.USAGE
    assert wrong.error[1:] == (
        f"version {OURS + 1} does not exist",
        f"this release has 0 to {OURS}",
    )


def test_the_sql_is_printed_without_a_database_and_makes_the_schema(
    command: Command, bare: Command, empty_database: str
) -> None:
    printed = command("db", "sql")
    assert printed.code == Exit.DONE
    assert "tenure db maintain" in printed.err
    with psycopg.connect(empty_database, autocommit=True) as connection:
        connection.execute(printed.out.encode())
    assert bare("db", "status").code == Exit.DONE
    assert "CREATE TABLE tenure.job_archive_" in bare("db", "maintain").out


def test_the_sql_goes_from_one_version_to_another(command: Command) -> None:
    back = command("db", "sql", "--from", OURS, "--to", 0, "--schema", "jobs", "--json")
    assert "DROP TABLE\n" in back.json["sql"]
    assert "    jobs.audit,\n" in back.json["sql"]
    assert "maintain" not in back.err


def test_a_schema_of_another_name_stands_beside(bare: Command) -> None:
    assert bare("db", "migrate", "--schema", "jobs").code == Exit.DONE
    assert bare("db", "status", "--schema", "jobs").code == Exit.DONE
    assert bare("db", "status").code == Exit.SCHEMA
    enqueued = bare("job", "enqueue", "work", "--schema", "jobs", "--json")
    assert enqueued.json == {"id": 1, "created": True}


async def test_upkeep_says_what_it_made_and_pruned(db: Database, tenure: Command) -> None:
    await db.fetch("DROP TABLE " + (await _newest(db)))
    kept = tenure("db", "maintain", "--json")
    assert kept.code == Exit.DONE
    assert [statement.split()[0] for statement in kept.json["done"]] == ["CREATE", "ALTER"]
    assert (kept.json["left"], kept.json["pruned_keys"]) == ([], 0)


async def _newest(db: Database) -> str:
    [row] = await db.fetch(
        "SELECT max(inhrelid::regclass::text) AS name FROM pg_inherits "
        "WHERE inhparent = 'tenure.attempt'::regclass"
    )
    name: str = row["name"]
    return name


async def test_role_without_the_right_is_refused_by_name(db: Database, tenure: Command) -> None:
    await db.fetch("CREATE ROLE reader LOGIN")
    try:
        await db.fetch("GRANT USAGE ON SCHEMA tenure TO reader")
        await db.fetch("GRANT SELECT ON ALL TABLES IN SCHEMA tenure TO reader")
        url = db.url.replace("://", "://reader@", 1) if "@" not in db.url else _as(db.url, "reader")
        refused = tenure("job", "enqueue", "work", "--database-url", url)
        assert refused.code == Exit.NOT_ALLOWED
        assert "permission denied" in refused.error[1]
    finally:
        await db.fetch("DROP OWNED BY reader")
        await db.fetch("DROP ROLE reader")


def _as(url: str, role: str) -> str:
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{role}@{rest.rpartition('@')[2]}"


def test_the_roles_are_printed_without_a_database(command: Command) -> None:
    printed = command("db", "roles")
    assert printed.code == Exit.DONE
    assert printed.out.startswith("BEGIN;")
    assert command("db", "roles", "--json").json["sql"] == printed.out
    other = command("db", "roles", "--schema", "jobs")
    assert "GRANT USAGE ON SCHEMA jobs TO jobs_server" in other.out
    assert command("db", "roles", "--schema", "no schema").code == Exit.USAGE


async def test_a_schema_from_before_the_first_release_is_refused_with_what_to_do(
    db: Database, tenure: Command
) -> None:
    await db.fetch("UPDATE tenure.schema_version SET name = '001_lease_store'")
    for words in (("db", "status"), ("db", "migrate"), ("queue", "list"), ("doctor",)):
        refused = tenure(*words)
        assert refused.code == Exit.SCHEMA
        assert refused.error[1:] == (
            "schema tenure is from before the first release",
            "drop it and migrate again: DROP SCHEMA tenure CASCADE, then tenure db migrate",
        )
