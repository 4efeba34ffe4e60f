"""`tenure db`: the schema's version, its migrations, its upkeep."""

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from tenure import _settings
from tenure.cli.errors import CommandError, Exit
from tenure.cli.options import (
    AsJson,
    CommandContext,
    Commands,
    SchemaName,
    operator_command,
)
from tenure.cli.output import print_fields, print_json, print_lines, print_note

app: typer.Typer = typer.Typer(
    cls=Commands, name="db", help="The schema: migrate it, look at it, keep it."
)

_To = Annotated[
    int | None,
    typer.Option("--to", metavar="N", min=0, help="The version to go to; else the newest."),
]


@operator_command(app, "migrate", dry_run=True, check=False)
def migrate(
    ctx: CommandContext,
    *,
    to: _To = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Go back without asking, although data is lost.")
    ] = False,
) -> int:
    """Bring the schema to this release's version, or to another, and make its partitions."""
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
    did = "would be applied to" if ctx.dry_run else "applied;"
    print_note(f"{len(steps)} migrations {did} schema {schema} at version {version}")
    return Exit.DONE


def _ask(steps: Sequence[str]) -> None:
    """Let a person confirm what takes tables away."""
    if not sys.stdin.isatty():
        raise CommandError(
            "going back was not confirmed",
            f"{', '.join(steps)}: what is in the tables would be lost",
            "say --yes if that is meant",
            Exit.USAGE,
        )
    print_note(f"{', '.join(steps)}: what is in the tables will be lost")
    typer.confirm("Go on?", abort=True, err=True)


@operator_command(app, "status", check=False)
def status(ctx: CommandContext) -> int:
    """Show which version the schema has, and which this release needs."""
    schema = _settings.resolve("schema", ctx.schema)
    found = ctx.admin.schema.status()
    fields = {
        "schema": schema,
        "version": found.version,
        "needed": found.needed,
        "pending": list(found.pending),
        "fits": found.fits,
        "problem": found.problem,
    }
    if ctx.as_json:
        print_json(fields)
    else:
        print_fields(fields | {"pending": ", ".join(found.pending)})
    return Exit.DONE if found.fits else Exit.SCHEMA


@app.command("sql")
def sql(
    *,
    since: Annotated[
        int, typer.Option("--from", metavar="N", min=0, help="The version that is there.")
    ] = 0,
    to: _To = None,
    as_json: AsJson = False,
    schema: SchemaName = None,
) -> int:
    """Print the migrations as SQL, for Alembic or Django. Touches no database."""
    from tenure import admin

    text = admin.sql(schema, since=since, to=to)
    if as_json:
        print_json({"from": since, "to": to, "sql": text})
    else:
        print_lines(text.splitlines())
    if to is None or to > since:
        print_note("then make the partitions, once the tables are there: tenure db maintain")
    return Exit.DONE


@app.command("roles")
def roles(*, as_json: AsJson = False, schema: SchemaName = None) -> int:
    """Print the SQL that makes the database's roles and grants each what it needs.

    Touches no database. To be run by a superuser once the schema is there, and again, by one or by
    the owner, when a release has brought tables.
    """
    from tenure import admin

    text = admin.roles(schema)
    if as_json:
        print_json({"sql": text})
    else:
        print_lines(text.splitlines())
    return Exit.DONE


@operator_command(app, "maintain")
def maintain(ctx: CommandContext) -> int:
    """Make the partitions ahead, drop what is past its retention. Needs the owner's role."""
    upkept = ctx.admin.schema.maintain()
    if ctx.as_json:
        print_json(upkept)
    else:
        print_lines(upkept.done)
    for left in upkept.left:
        print_note(f"left for the next time: {left}")
    print_note(
        f"pruned {upkept.pruned_failed} dead letters, {upkept.pruned_keys} keys, "
        f"{upkept.pruned_workers} workers, {upkept.pruned_operations} operations"
    )
    return Exit.DONE
