"""`tenure schedule`: list, show, preview, pause, resume, run, delete, backfill."""

from typing import TYPE_CHECKING, Annotated

import typer

from tenure.cli import schedule_define, schedule_output
from tenure.cli.errors import CommandError, Exit, failure
from tenure.cli.operation_progress import start_and_follow
from tenure.cli.options import (
    AsJson,
    Commands,
    DatabaseUrl,
    DryRun,
    Reason,
    SchemaName,
    Who,
    actor,
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
    from datetime import datetime

    from tenure.admin import Run
    from tenure.types import OperationRow, ScheduleRow


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
    with connect_admin(database_url, schema) as admin:
        rows = [*map(admin.redactor().schedule, admin.schedules.list(after=after, count=count))]
    more = rows[-1].name if len(rows) == count else None
    if as_json:
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


def show(
    name: Name,
    *,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    schema: SchemaName = None,
) -> int:
    """Show one schedule: what it does, its next and its last runs, and what was done to it."""
    with connect_admin(database_url, schema) as admin:
        row = admin.redactor().schedule(known(admin, name))
        runs = admin.schedules.preview(name, count=5)
        ticks = admin.schedules.ticks(name, count=10)
        audit = admin.audit(f"schedule:{name}", count=10)
    if as_json:
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


def pause(
    name: Name,
    *,
    until: Annotated[
        str | None,
        typer.Option("--until", metavar="INSTANT", help="Go on by itself then."),
    ] = None,
    reason: Reason = None,
    who: Who = None,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    schema: SchemaName = None,
) -> int:
    """Let a schedule make no jobs, until then or until resumed. Each tick is recorded as paused."""
    then = instant(until)
    with connect_admin(database_url, schema) as admin:
        known(admin, name)
        row = admin.schedules.pause(name, actor(who, reason), until=then)
    if as_json:
        print_json({"schedule": schedule_output.as_data(row)})
    print_note(f"{name} is {schedule_output.state(row)}; to go on: tenure schedule resume {name}")
    return Exit.DONE


def resume(
    name: Name,
    *,
    reason: Reason = None,
    who: Who = None,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    schema: SchemaName = None,
) -> int:
    """Let a paused schedule make jobs again, from its next tick on."""
    with connect_admin(database_url, schema) as admin:
        known(admin, name)
        row = admin.schedules.resume(name, actor(who, reason))
    if as_json:
        print_json({"schedule": schedule_output.as_data(row)})
    upcoming = schedule_output.local(row.next_at, row.timing.zone)
    print_note(f"{name} is {schedule_output.state(row)}; next: {upcoming}")
    return Exit.DONE


def delete(
    name: Name,
    *,
    reason: Reason = None,
    who: Who = None,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    schema: SchemaName = None,
) -> int:
    """Remove a schedule that no code declares; its ticks and jobs stay."""
    with connect_admin(database_url, schema) as admin:
        known(admin, name)
        row = admin.schedules.delete(name, actor(who, reason))
    if as_json:
        print_json({"schedule": schedule_output.as_data(row)})
    print_note(f"{name} is deleted; the jobs that it made are as they were")
    return Exit.DONE


def run(
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
    reason: Reason = None,
    who: Who = None,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    schema: SchemaName = None,
) -> int:
    """Enqueue a schedule's job now, beside its ticks, and print its id."""
    with connect_admin(database_url, schema) as admin:
        known(admin, name)
        answer = admin.schedules.run(name, actor(who, reason), key=key)
    if as_json:
        print_json(answer)
    else:
        print_lines([str(answer.id)])
    if answer.created:
        print_note(f"enqueued job {answer.id} of {name}")
    else:
        print_note(f"job {answer.id} has this key already; nothing was enqueued")
    return Exit.DONE


def backfill(
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
    reason: Reason = None,
    dry_run: DryRun = False,
    who: Who = None,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    schema: SchemaName = None,
) -> int:
    """Make the jobs of past ticks that have none, at a rate.

    Workers do it; Ctrl-C stops watching, and it goes on.
    """
    first, last = _ends(since, until)
    with connect_admin(database_url, schema) as admin:
        known(admin, name)

        def start(rehearsal: bool) -> "OperationRow":
            return admin.schedules.backfill(
                name,
                first,
                last,
                actor(who, reason),
                rate=rate,
                forgotten=forgotten,
                dry_run=rehearsal,
            )

        return start_and_follow(
            admin, start, of="ticks without a job", yes=True, dry_run=dry_run, as_json=as_json
        )


def _ends(since: str, until: str | None) -> "tuple[datetime, datetime]":
    from datetime import UTC, datetime, timedelta

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
