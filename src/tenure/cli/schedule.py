"""`tenure schedule`: list, show, preview, pause, resume, run, delete, backfill."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from tenure.cli import schedule_define, schedule_output
from tenure.cli.errors import CommandError, Exit, failure
from tenure.cli.fields import admin_command
from tenure.cli.job_output import print_enqueued
from tenure.cli.operation_progress import start_and_follow
from tenure.cli.options import (
    AsJson,
    CommandContext,
    Commands,
    DatabaseUrl,
    DryRun,
    SchemaName,
    connect_admin,
    duration_option,
    instant,
    parse_duration,
)
from tenure.cli.output import print_fields, print_json, print_lines, print_note, print_table
from tenure.cli.schedule_output import Name, known
from tenure.errors import TenureError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenure.admin import Run
    from tenure.types import OperationRow, ScheduleRow


@admin_command(changes=False)
def list_schedules(
    context: CommandContext,
    *,
    count: Annotated[
        int, typer.Option("-n", "--count", min=1, max=1000, help="How many at the most.")
    ] = 100,
    after: Annotated[
        str, typer.Option("--after", metavar="NAME", help="Go on behind this name.")
    ] = "",
) -> int:
    """Show schedules by name, with their next and their last run."""
    admin = context.admin
    rows = [
        *map(admin.settings.redactor().schedule, admin.schedules.list(after=after, count=count))
    ]
    more = rows[-1].name if len(rows) == count else None
    if context.as_json:
        print_json({"schedules": [schedule_output.as_data(row) for row in rows], "next": more})
    elif rows:
        print_table(
            ("name", "when", "zone", "state", "next there", "next UTC", "last UTC", "overridden"),
            [
                (
                    row.name,
                    schedule_output.when(row.timing),
                    row.timing.zone,
                    schedule_output.state(row),
                    schedule_output.local(row.next_at, row.timing.zone),
                    row.next_at,
                    row.last_at,
                    schedule_output.overridden(row),
                )
                for row in rows
            ],
        )
    if more:
        print_note(f"{len(rows)} shown; more may follow: --after {more}")
    else:
        print_note(f"{len(rows)} shown; no more")
    return Exit.DONE


@admin_command(changes=False)
def show(context: CommandContext, name: Name) -> int:
    """Show one schedule: what it does, its next and its last runs, and what was done to it."""
    admin = context.admin
    row = admin.settings.redactor().schedule(known(admin, name))
    runs = admin.schedules.preview(name, count=5)
    ticks = admin.schedules.ticks(name, count=10)
    audit = admin.audit.list(f"schedule:{name}", count=10)
    if context.as_json:
        print_json(
            {"schedule": schedule_output.as_data(row), "next": runs, "ticks": ticks, "audit": audit}
        )
        return Exit.DONE
    print_fields(_fields(row))
    if runs:
        print_lines(["", "next runs"])
        schedule_output.print_runs(runs, row.timing.zone)
    if ticks:
        print_lines(["", "past runs"])
        schedule_output.print_ticks(ticks, row.timing.zone)
    if audit:
        print_lines([""])
        schedule_output.print_audit(audit)
    if schedule_output.overridden(row):
        print_note("* set by an operator, over what the code declares")
    return Exit.DONE


def _fields(row: "ScheduleRow") -> dict[str, object]:
    job, version = row.job, ".".join(str(part) for part in row.program_version)
    made_by = "an operator" if row.program is None else f"program {row.program} {version}"
    return {
        "schedule": row.name,
        "when": schedule_output.when(row.timing),
        "zone": row.timing.zone,
        "state": schedule_output.state(row),
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
        **{name.replace("_", " "): text for name, text in schedule_output.policies(row).items()},
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
    every: Annotated[
        str | None, duration_option("--every", "In the place of an expression:")
    ] = None,
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
        with connect_admin(database_url, schema) as admin:
            zone = known(admin, what).timing.zone
            runs = admin.schedules.preview(what, count=count, after=since)
        _print(runs, zone, as_json=as_json)
        return Exit.DONE
    from tenure.admin import preview_timing

    zone = timezone or "UTC"
    try:
        runs = preview_timing(
            cron=what, every=parse_duration(every), timezone=zone, count=count, after=since
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
        raise CommandError(
            "a schedule has its own times",
            "--every and --timezone are for what no schedule has yet",
            "leave them away, or write an expression in the place of the name",
            Exit.USAGE,
        )


def _print(runs: "Sequence[Run]", zone: str, *, as_json: bool) -> None:
    if as_json:
        print_json({"zone": zone, "runs": runs})
    elif runs:
        schedule_output.print_runs(runs, zone)
    print_note(f"{len(runs)} runs to come are shown" if runs else "no run is to come")


@admin_command(changes=True)
def pause(
    context: CommandContext,
    name: Name,
    *,
    until: Annotated[
        datetime | None,
        typer.Option("--until", metavar="INSTANT", help="Go on by itself then.", parser=instant),
    ] = None,
) -> int:
    """Let a schedule make no jobs, until then or until resumed. Each tick is recorded as paused."""
    known(context.admin, name)
    row = context.admin.schedules.pause(name, context.by, until=until)
    state = schedule_output.state(row)
    return _steered(context, row, f"is {state}; to go on: tenure schedule resume {name}")


@admin_command(changes=True)
def resume(context: CommandContext, name: Name) -> int:
    """Let a paused schedule make jobs again, from its next tick on."""
    known(context.admin, name)
    row = context.admin.schedules.resume(name, context.by)
    upcoming = schedule_output.local(row.next_at, row.timing.zone)
    return _steered(context, row, f"is {schedule_output.state(row)}; next: {upcoming}")


@admin_command(changes=True)
def delete(context: CommandContext, name: Name) -> int:
    """Remove a schedule that no code declares; its ticks and jobs stay."""
    known(context.admin, name)
    row = context.admin.schedules.delete(name, context.by)
    return _steered(context, row, "is deleted; the jobs that it made are as they were")


def _steered(context: CommandContext, row: "ScheduleRow", what: str) -> int:
    if context.as_json:
        print_json({"schedule": schedule_output.as_data(row)})
    print_note(f"{row.name} {what}")
    return Exit.DONE


@admin_command(changes=True)
def run(
    context: CommandContext,
    name: Name,
    *,
    key: Annotated[
        str | None,
        typer.Option(
            "--key",
            metavar="TEXT",
            help="Until a day after its end, the same key makes no second one.",
        ),
    ] = None,
) -> int:
    """Enqueue a schedule's job now, beside its ticks, and print its id."""
    known(context.admin, name)
    answer = context.admin.schedules.run(name, context.by, key=key)
    return print_enqueued(answer, f"of {name}", as_json=context.as_json)


@admin_command(changes=True)
def backfill(
    context: CommandContext,
    name: Name,
    *,
    since: Annotated[
        str, typer.Option("--from", metavar="INSTANT", help="The first tick's time or before.")
    ],
    until: Annotated[
        str | None,
        typer.Option("--to", metavar="INSTANT", help="The last tick's time or after; else now."),
    ] = None,
    forgotten: Annotated[
        bool,
        typer.Option("--forgotten", help="Also ticks so old that nobody knows what they made."),
    ] = False,
    rate: Annotated[
        int, typer.Option("--rate", min=1, max=10_000, help="How many jobs a second at the most.")
    ] = 500,
    dry_run: DryRun = False,
) -> int:
    """Make the jobs of past ticks that have none, at a rate.

    Workers do it; Ctrl-C stops watching, and it goes on.
    """
    first, last = _ends(since, until)
    admin = context.admin
    known(admin, name)

    def start(rehearsal: bool) -> "OperationRow":
        return admin.schedules.backfill(
            name, first, last, context.by, rate=rate, forgotten=forgotten, dry_run=rehearsal
        )

    return start_and_follow(
        admin,
        start,
        of="ticks without a job",
        yes=True,
        dry_run=dry_run,
        as_json=context.as_json,
    )


def _ends(since: str, until: str | None) -> tuple[datetime, datetime]:
    # The database's clock is the judge of now; this one may be behind it.
    ahead = datetime.now(UTC) + timedelta(days=1)
    ends = [instant(since), instant(until) or ahead]
    first, last = [end for end in ends if end is not None]
    for text, end in ((since, first), (until, last)):
        if end.tzinfo is None:
            raise CommandError(
                "the instant is not understood",
                f"{text} has no time zone",
                "write it with one, as in 2030-01-31T09:00+01:00",
                Exit.USAGE,
            )
    return first, last


app: typer.Typer = typer.Typer(
    cls=Commands, name="schedule", help="Schedules: make them, look at them, steer them."
)
app.command("list")(list_schedules)
app.command("show")(show)
app.command("preview")(preview)
app.command("create")(schedule_define.create)
app.command("update")(schedule_define.update)
app.command("pause")(pause)
app.command("resume")(resume)
app.command("delete")(delete)
app.command("run")(run)
app.command("backfill")(backfill)
