"""`tenure db`: migrate, check and maintain the schema."""

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from tenure import _settings
from tenure.cli.errors import CommandError, Exit
from tenure.cli.help import HelpGroup
from tenure.cli.options import (
    AsJson,
    CommandContext,
    SchemaName,
    operator_command,
    plain_command,
)
from tenure.cli.output import print_fields, print_json, print_lines, print_note

app: typer.Typer = typer.Typer(
    cls=HelpGroup, name="db", help="Migrate, check and maintain the schema."
)

_To = Annotated[
    int | None,
    typer.Option(
        "--to",
        metavar="VERSION",
        min=0,
        help="Migrate up or down to this version.",
        show_default="the newest",
    ),
]


@operator_command(app, "migrate", example="tenure db migrate", dry_run=True, check=False)
def migrate(
    ctx: CommandContext,
    *,
    to: _To = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Migrate down without asking. Data is lost.")
    ] = False,
) -> int:
    """Migrate the schema to this release, and create partitions.

    Each migration runs in its own transaction. It's safe to run the command twice at the same time:
    the second run waits for the first. Migrating down deletes tables and their data, and asks for
    confirmation first.

    JSON: `version`, `dry_run` and `migrations`.
    """
    schema = _settings.resolve("schema", ctx.schema)
    steps = ctx.admin.schema.plan(to=to)
    if not ctx.dry_run:
        if any(step.endswith(" down") for step in steps) and not yes:
            _ask(steps)
        steps = ctx.admin.schema.migrate(to=to)
    version = ctx.admin.schema.status().version
    if ctx.as_json:
        print_json({"version": version, "dry_run": ctx.dry_run, "migrations": steps})
    else:
        print_lines(steps)
    verb = "would be applied" if ctx.dry_run else "applied"
    print_note(f"{len(steps)} migrations {verb}; schema {schema} is at version {version}")
    return Exit.DONE


def _ask(steps: Sequence[str]) -> None:
    """Ask the user to confirm dropping tables."""
    if not sys.stdin.isatty():
        raise CommandError(
            "migrating down was not confirmed",
            f"{', '.join(steps)} would delete tables with their data",
            "add --yes to confirm",
            Exit.USAGE,
        )
    print_note(f"{', '.join(steps)} will delete tables with their data")
    typer.confirm("Continue?", abort=True, err=True)


@operator_command(app, "status", example="tenure db status", check=False)
def show_status(ctx: CommandContext) -> int:
    """Compare the schema's version with this release.

    Exits with 8 if the schema is incompatible.

    JSON: `schema`, `version`, `needed`, `pending`, `fits` and `problem`.
    """
    schema = _settings.resolve("schema", ctx.schema)
    status = ctx.admin.schema.status()
    fields = {
        "schema": schema,
        "version": status.version,
        "needed": status.needed,
        "pending": list(status.pending),
        "fits": status.fits,
        "problem": status.problem,
    }
    if ctx.as_json:
        print_json(fields)
    else:
        print_fields(fields | {"pending": ", ".join(status.pending)})
    return Exit.DONE if status.fits else Exit.SCHEMA


@plain_command(app, "sql", example="tenure db sql --from 8 > tenure.sql")
def sql(
    *,
    since: Annotated[
        int, typer.Option("--from", metavar="VERSION", min=0, help="Start from this version.")
    ] = 0,
    to: _To = None,
    as_json: AsJson = False,
    schema: SchemaName = None,
) -> int:
    """Print the migrations as SQL, for Alembic or Django.

    Doesn't connect to a database. The SQL also records the version. It does not create partitions,
    so run `tenure db maintain` once the tables exist.

    JSON: `from`, `to` and `sql`.
    """
    from tenure import admin

    text = admin.sql(schema, since=since, to=to)
    if as_json:
        print_json({"from": since, "to": to, "sql": text})
    else:
        print_lines(text.splitlines())
    if to is None or to > since:
        print_note("once the tables exist, create the partitions: tenure db maintain")
    return Exit.DONE


@plain_command(app, "roles", example="tenure db roles | psql mydatabase")
def roles(*, as_json: AsJson = False, schema: SchemaName = None) -> int:
    """Print the SQL that creates database roles and their privileges.

    Doesn't connect to a database. The roles are owner, server, worker, producer and reader,
    prefixed with the schema's name. Run the SQL as a superuser once the schema exists. After an
    upgrade, run it again, as a superuser or the owner, once every program runs the new release.
    Before that, run only its lines that begin with GRANT, which add rights and revoke none.

    JSON: `sql`.
    """
    from tenure import admin

    text = admin.roles(schema)
    if as_json:
        print_json({"sql": text})
    else:
        print_lines(text.splitlines())
    return Exit.DONE


@operator_command(app, "maintain", example="tenure db maintain")
def maintain(ctx: CommandContext) -> int:
    """Create partitions ahead, and drop expired data.

    Needs the role that owns the tables. If a reader has locked a partition, it's left for the next
    run.

    JSON: `done`, `left` and the counts of deleted rows.
    """
    result = ctx.admin.schema.maintain()
    if ctx.as_json:
        print_json(result)
    else:
        print_lines(result.done)
    for left in result.left:
        print_note(f"left for the next run: {left}")
    print_note(
        f"pruned {result.pruned_failed} dead letters, {result.pruned_keys} keys, "
        f"{result.pruned_workers} workers, {result.pruned_operations} operations"
    )
    return Exit.DONE
