"""`tenure schedule`: list, show, preview, pause, resume, delete, run and backfill."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from tenure.cli import schedule_define, schedule_output
from tenure.cli.errors import CommandError, Exit, failure
from tenure.cli.help import HelpGroup
from tenure.cli.job_output import print_enqueued
from tenure.cli.operation_progress import start_and_follow
from tenure.cli.options import (
    CommandContext,
    Count,
    duration_option,
    instant,
    operator_command,
    parse_duration,
)
from tenure.cli.output import (
    print_audit,
    print_fields,
    print_json,
    print_lines,
    print_note,
    print_page_end,
    print_table,
)
from tenure.cli.schedule_output import Name, known
from tenure.cli.selectors import Rate
from tenure.errors import TenureError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenure.admin import Run
    from tenure.types import OperationRow, ScheduleRow


app: typer.Typer = typer.Typer(
    cls=HelpGroup, name="schedule", help="Create, inspect and manage schedules."
)


@operator_command(app, "list", example="tenure schedule list")
def list_schedules(
    ctx: CommandContext,
    *,
    count: Count = 100,
    after: Annotated[
        str, typer.Option("--after", metavar="NAME", help="Show schedules after this name.")
    ] = "",
) -> int:
    """List schedules with their next and last run.

    Times are in the schedule's zone and in UTC. A `*` marks a value that an operator overrode.

    JSON: `schedules`, each with its policies `in_force`, and `next`.
    """
    admin = ctx.admin
    rows = [
        *map(admin.settings.redactor().schedule, admin.schedules.list(after=after, count=count))
    ]
    more = rows[-1].name if len(rows) == count else None
    if ctx.as_json:
        print_json({"schedules": [schedule_output.as_data(row) for row in rows], "next": more})
    elif rows:
        print_table(
            ("name", "when", "zone", "state", "next local", "next UTC", "last UTC", "overridden"),
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
    print_page_end(len(rows), "--after", more)
    return Exit.DONE


@operator_command(app, "show", example="tenure schedule show daily-report")
def show(ctx: CommandContext, name: Name) -> int:
    """Show a schedule with its runs and audit log.

    Prints the next 5 runs, the last 10 runs with their results, the policies, and the program that
    declares it. Exits with 3 if the schedule does not exist.

    JSON: `schedule`, `next`, `ticks` and `audit`.
    """
    admin = ctx.admin
    row = admin.settings.redactor().schedule(known(admin, name))
    runs = admin.schedules.preview(name, count=5)
    ticks = admin.schedules.ticks(name, count=10)
    redactor = admin.settings.redactor()
    audit = [*map(redactor.audit, admin.audit.list(f"schedule:{name}", count=10))]
    if ctx.as_json:
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
        print_audit(audit)
    if schedule_output.overridden(row):
        print_note("* set by an operator, over the value in the code")
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
        "created by": made_by,
        "version": row.version,
        "created": row.created_at,
        "changed": row.changed_at,
        "last run": row.last_at,
        "last job": row.last_job_id,
    }


@operator_command(
    app,
    "preview",
    example="tenure schedule preview '30 2 * * *' --timezone Europe/Berlin",
)
def preview(
    ctx: CommandContext,
    schedule: Annotated[
        str | None,
        typer.Argument(metavar="[NAME|CRON]", help="Name of a schedule, or a cron expression."),
    ] = None,
    *,
    every: Annotated[
        str | None, duration_option("--every", "Preview an interval instead, such as 90s.")
    ] = None,
    timezone: Annotated[
        str | None,
        typer.Option(
            "--timezone",
            metavar="ZONE",
            help="Read the cron expression in this time zone.",
            show_default="UTC",
        ),
    ] = None,
    count: Count = 10,
    after: Annotated[
        str | None,
        typer.Option(
            "--after", metavar="TIME", help="Show runs after this time.", show_default="now"
        ),
    ] = None,
) -> int:
    """Show a schedule's or cron expression's next runs.

    You can preview a cron expression without a database. Days with a clock change are marked, with
    the change and whether it moved the run. If the schedule has jitter, a `due` column is added.

    JSON: `zone`, and `runs` with `fire_at`, `local`, `run_at`, `shift`, `moved` and `paused`.
    """
    since = instant(after)
    if schedule is not None and not _is_expression(schedule):
        _refuse_timing(every, timezone)
        zone = known(ctx.admin, schedule).timing.zone
        runs = ctx.admin.schedules.preview(schedule, count=count, after=since)
        _print(runs, zone, as_json=ctx.as_json)
        return Exit.DONE
    from tenure.admin import preview_timing

    zone = timezone or "UTC"
    try:
        runs = preview_timing(
            cron=schedule, every=parse_duration(every), timezone=zone, count=count, after=since
        )
    except TenureError as error:
        raise failure(error) from error
    _print(runs, zone, as_json=ctx.as_json)
    return Exit.DONE


def _is_expression(text: str) -> bool:
    """Return whether it's a cron expression. A name has no spaces and doesn't start with @."""
    return " " in text.strip() or text.startswith("@")


def _refuse_timing(every: str | None, timezone: str | None) -> None:
    if every is not None or timezone is not None:
        raise CommandError(
            "a schedule has its own times",
            "--every and --timezone do not apply to an existing schedule",
            "omit them, or pass a cron expression instead of the name",
            Exit.USAGE,
        )


def _print(runs: "Sequence[Run]", zone: str, *, as_json: bool) -> None:
    if as_json:
        print_json({"zone": zone, "runs": runs})
    elif runs:
        schedule_output.print_runs(runs, zone)
    print_note(f"upcoming runs: {len(runs)}")


schedule_define.add_commands(app)


@operator_command(
    app, "pause", example="tenure schedule pause daily-report --reason migration", changes=True
)
def pause(
    ctx: CommandContext,
    name: Name,
    *,
    until: Annotated[
        datetime | None,
        typer.Option("--until", metavar="TIME", help="Resume at this time.", parser=instant),
    ] = None,
) -> int:
    """Pause a schedule.

    Each skipped run is recorded as `paused`. Resuming does not catch up on skipped runs.

    JSON: `schedule`.
    """
    known(ctx.admin, name)
    row = ctx.admin.schedules.pause(name, ctx.by, until=until)
    state = schedule_output.state(row)
    return _report(ctx, row, f"is {state}; to resume it: tenure schedule resume {name}")


@operator_command(app, "resume", example="tenure schedule resume daily-report", changes=True)
def resume(ctx: CommandContext, name: Name) -> int:
    """Resume a paused schedule from its next run.

    JSON: `schedule`.
    """
    known(ctx.admin, name)
    row = ctx.admin.schedules.resume(name, ctx.by)
    upcoming = schedule_output.local(row.next_at, row.timing.zone)
    return _report(ctx, row, f"is {schedule_output.state(row)}; next run: {upcoming}")


@operator_command(app, "delete", example="tenure schedule delete daily-report", changes=True)
def delete(ctx: CommandContext, name: Name) -> int:
    """Delete a schedule. Its past runs and jobs are kept.

    You can't delete a schedule that is declared in code: remove it from the code, or pause it. You
    can delete a `retired` schedule.

    JSON: `schedule`, as it was before deletion.
    """
    known(ctx.admin, name)
    row = ctx.admin.schedules.delete(name, ctx.by)
    return _report(ctx, row, "is deleted; its jobs stay")


def _report(ctx: CommandContext, row: "ScheduleRow", outcome: str) -> int:
    if ctx.as_json:
        print_json({"schedule": schedule_output.as_data(row)})
    print_note(f"schedule {row.name} {outcome}")
    return Exit.DONE


@operator_command(app, "run", example="tenure schedule run daily-report", changes=True)
def run(
    ctx: CommandContext,
    name: Name,
    *,
    key: Annotated[
        str | None,
        typer.Option(
            "--key",
            metavar="TEXT",
            help="Run once per key, until a day after it ends.",
        ),
    ] = None,
) -> int:
    """Enqueue a schedule's job now, and print its id.

    Works even if the schedule is paused.

    JSON: `id` and `created`, which is false if the key was taken.
    """
    known(ctx.admin, name)
    answer = ctx.admin.schedules.run(name, ctx.by, key=key)
    return print_enqueued(answer, f"of {name}", as_json=ctx.as_json)


@operator_command(
    app,
    "backfill",
    example="tenure schedule backfill daily-report --from 2030-01-01T00:00Z --dry-run",
    changes=True,
    dry_run=True,
)
def backfill(
    ctx: CommandContext,
    name: Name,
    *,
    since: Annotated[str, typer.Option("--from", metavar="TIME", help="Start at this time.")],
    until: Annotated[
        str | None,
        typer.Option("--to", metavar="TIME", help="End at this time.", show_default="now"),
    ] = None,
    forgotten: Annotated[
        bool,
        typer.Option("--forgotten", help="Include runs older than the retention period."),
    ] = False,
    rate: Rate = 500,
) -> int:
    """Enqueue jobs for past runs that never got one.

    Covers up to 1,000,000 runs: skipped ones, and those from before the schedule was created. Runs
    that are due but haven't fired yet are left to the schedule. `--forgotten` includes runs older
    than the `keep_ticks_days` setting, even if they already had a job.

    Workers enqueue the jobs, as an operation. Ctrl-C stops watching, not the operation.

    JSON: `dry_run`, `detached` and `operation`. With `--dry-run`: `dry_run` and `total`.
    """
    first, last = _ends(since, until)
    admin = ctx.admin
    known(admin, name)

    def start(dry_run: bool) -> "OperationRow":
        return admin.schedules.backfill(
            name, first, last, ctx.by, rate=rate, forgotten=forgotten, dry_run=dry_run
        )

    return start_and_follow(
        admin,
        start,
        of="runs without a job",
        yes=True,
        dry_run=ctx.dry_run,
        as_json=ctx.as_json,
    )


def _ends(since: str, until: str | None) -> tuple[datetime, datetime]:
    # The database's clock determines the current time, and this machine's may be behind it.
    ahead = datetime.now(UTC) + timedelta(days=1)
    ends = [instant(since), instant(until) or ahead]
    first, last = [end for end in ends if end is not None]
    for text, end in ((since, first), (until, last)):
        if end.tzinfo is None:
            raise CommandError(
                "the time is not valid",
                f"a time must have a time zone, got {text}",
                "write it as in 2030-01-31T09:00+01:00",
                Exit.USAGE,
            )
    return first, last
