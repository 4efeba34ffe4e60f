"""`tenure schedule list`, `show` and `preview`: looking at schedules, changing nothing."""

from typing import TYPE_CHECKING, Annotated

import typer

from tenure.cli.data import print_fields, print_json, print_lines, print_table
from tenure.cli.exits import Exit
from tenure.cli.failure import Failure, failure
from tenure.cli.options import (
    AsJson,
    DatabaseUrl,
    SchemaName,
    instant,
    lasting,
    opened,
    seconds,
)
from tenure.cli.schedule import shown
from tenure.cli.schedule.naming import Name, known
from tenure.cli.words import say
from tenure.errors import TenureError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenure.admin import Run, ScheduleRow


def list_schedules(
    *,
    count: Annotated[
        int, typer.Option("-n", "--count", min=1, max=1000, help="How many at the most.")
    ] = 100,
    after: Annotated[
        str, typer.Option("--after", metavar="NAME", help="Go on behind this name.")
    ] = "",
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    schema: SchemaName = None,
) -> int:
    """Show schedules by name, with their next and their last run."""
    with opened(database_url, schema) as admin:
        rows = [*map(admin.redactor().schedule, admin.schedules.list(after=after, count=count))]
    more = rows[-1].name if len(rows) == count else None
    if as_json:
        print_json({"schedules": [shown.as_data(row) for row in rows], "next": more})
    elif rows:
        print_table(
            ("name", "when", "zone", "state", "next there", "next UTC", "last UTC", "overridden"),
            [
                (
                    row.name,
                    shown.when(row.timing),
                    row.timing.zone,
                    shown.state(row),
                    shown.local(row.next_at, row.timing.zone),
                    row.next_at,
                    row.last_at,
                    shown.overridden(row),
                )
                for row in rows
            ],
        )
    if more:
        say(f"{len(rows)} shown; more may follow: --after {more}")
    else:
        say(f"{len(rows)} shown; no more")
    return Exit.DONE


def show(
    name: Name,
    *,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    schema: SchemaName = None,
) -> int:
    """Show one schedule: what it does, its next and its last runs, and what was done to it."""
    with opened(database_url, schema) as admin:
        row = admin.redactor().schedule(known(admin, name))
        runs = admin.schedules.preview(name, count=5)
        ticks = admin.schedules.ticks(name, count=10)
        audit = admin.audit(f"schedule:{name}", count=10)
    if as_json:
        print_json({"schedule": shown.as_data(row), "next": runs, "ticks": ticks, "audit": audit})
        return Exit.DONE
    print_fields(_fields(row))
    if runs:
        print_lines(["", "next runs"])
        shown.print_runs(runs, row.timing.zone)
    if ticks:
        print_lines(["", "past runs"])
        shown.print_ticks(ticks, row.timing.zone)
    if audit:
        print_lines([""])
        shown.print_audit(audit)
    if shown.overridden(row):
        say("* set by an operator, over what the code declares")
    return Exit.DONE


def _fields(row: "ScheduleRow") -> dict[str, object]:
    job, version = row.job, ".".join(str(part) for part in row.program_version)
    made_by = "an operator" if row.program is None else f"program {row.program} {version}"
    return {
        "schedule": row.name,
        "when": shown.when(row.timing),
        "zone": row.timing.zone,
        "state": shown.state(row),
        "paused": row.paused_at,
        "paused by": row.paused_by,
        "paused because": row.paused_reason,
        "retired": row.retired_at,
        "task": job.task,
        "arguments": job.args or None,
        "queue": job.queue,
        "priority": job.priority,
        "max attempts": job.max_attempts,
        "meta": job.meta or None,
        **{name.replace("_", " "): text for name, text in shown.policies(row).items()},
        "made by": made_by,
        "version": row.version,
        "created": row.created_at,
        "changed": row.changed_at,
        "last tick": row.last_at,
        "last job": row.last_job_id,
    }


def preview(
    what: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME|CRON]", help="A schedule, or a cron expression that none has yet."
        ),
    ] = None,
    *,
    every: Annotated[str | None, lasting("--every", "In the place of an expression:")] = None,
    timezone: Annotated[
        str | None,
        typer.Option("--timezone", metavar="ZONE", help="The expression's; else UTC."),
    ] = None,
    count: Annotated[
        int, typer.Option("-n", "--count", min=1, max=1000, help="How many runs.")
    ] = 10,
    after: Annotated[
        str | None,
        typer.Option("--after", metavar="INSTANT", help="After then; else after now."),
    ] = None,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    schema: SchemaName = None,
) -> int:
    """Show the next runs of a schedule, or of an expression, which needs no database."""
    since = instant(after)
    if what is not None and not _is_expression(what):
        _refuse_timing(every, timezone)
        with opened(database_url, schema) as admin:
            zone = known(admin, what).timing.zone
            runs = admin.schedules.preview(what, count=count, after=since)
        _print(runs, zone, as_json=as_json)
        return Exit.DONE
    from tenure.admin import preview_timing

    zone = timezone or "UTC"
    try:
        runs = preview_timing(
            cron=what, every=seconds(every), timezone=zone, count=count, after=since
        )
    except TenureError as error:
        raise failure(error) from error
    _print(runs, zone, as_json=as_json)
    return Exit.DONE


def _is_expression(what: str) -> bool:
    """A name has no space in it, and does not begin with an @."""
    return " " in what.strip() or what.startswith("@")


def _refuse_timing(every: str | None, timezone: str | None) -> None:
    if every is not None or timezone is not None:
        raise Failure(
            "a schedule has its own times",
            "--every and --timezone are for what no schedule has yet",
            "leave them away, or write an expression in the place of the name",
            Exit.USAGE,
        )


def _print(runs: "Sequence[Run]", zone: str, *, as_json: bool) -> None:
    if as_json:
        print_json({"zone": zone, "runs": runs})
    elif runs:
        shown.print_runs(runs, zone)
    say(f"{len(runs)} runs to come are shown" if runs else "no run is to come")
