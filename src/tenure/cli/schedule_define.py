"""`tenure schedule create` and `update`: schedules by task name."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from tenure.cli import schedule_output
from tenure.cli.errors import Exit
from tenure.cli.fields import duration, job_fields, moment
from tenure.cli.options import CommandContext, operator_command, parse_duration
from tenure.cli.output import print_json, print_note
from tenure.cli.schedule_output import Name, known

if TYPE_CHECKING:
    from tenure.types import ScheduleRow

_DECLARED = "declared"
MissedName = Literal["skip", "latest", "all"]
MissedOrDeclared = Literal["skip", "latest", "all", "declared"]
OverlapName = Literal["allow", "skip"]


def _or_declared(read: Callable[[str], Any]) -> Callable[[str], Any]:
    return lambda text: text if text == _DECLARED else read(text)


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise typer.BadParameter(f"must be a number or 'declared', got {text!r}") from None


def _fields(*, update: bool) -> dict[str, Any]:
    """Return both commands' options. With `update`, a policy can be `declared` again."""

    def default(text: str) -> str:
        return "" if update else text

    read = _or_declared if update else lambda parser: parser
    missed = "skip|latest|all" + ("|declared" if update else "")
    return {
        "cron": Annotated[
            str | None,
            typer.Option("--cron", metavar="CRON", help="Run at times such as '30 2 * * *'."),
        ],
        "every": duration("--every", "Run at this interval, such as 5m."),
        "at": moment("--at", "Run once, such as at 2030-01-31T09:00+01:00."),
        "timezone": Annotated[
            str | None,
            typer.Option(
                "--timezone",
                metavar="ZONE",
                help="Read --cron in this zone, such as Europe/Berlin.",
                show_default=default("UTC") or False,
            ),
        ],
        **job_fields(defaults=not update),
        "overlap": Annotated[
            OverlapName | None,
            typer.Option(
                "--overlap",
                metavar="allow|skip",
                help="Choose what happens while the last job runs.",
                show_default=default("allow") or False,
            ),
        ],
        "missed": Annotated[
            (MissedOrDeclared if update else MissedName) | None,
            typer.Option(
                "--missed",
                metavar=missed,
                help="Choose which missed runs still make jobs.",
                show_default=default("latest") or False,
            ),
        ],
        "missed_within": duration(
            "--missed-within",
            "Ignore runs missed longer ago, such as 1h.",
            parser=read(parse_duration),
            default=default("1d"),
        ),
        "missed_limit": Annotated[
            int | None,
            typer.Option(
                "--missed-limit",
                metavar="N",
                help="Make up for at most N missed runs.",
                show_default=default("100") or False,
                parser=read(_number),
            ),
        ],
        "jitter": duration(
            "--jitter",
            "Delay each job randomly, up to this time.",
            parser=read(parse_duration),
            default=default("0"),
        ),
    }


TaskName = Annotated[
    str | None, typer.Option("--task", metavar="NAME", help="Run this task instead.")
]


def create(
    ctx: CommandContext,
    name: Name,
    task: Annotated[str, typer.Argument(metavar="TASK", help="Name of the task.")],
    *,
    fields: dict[str, Any],
) -> int:
    """Create a schedule for a task, by the task's name.

    Pass exactly one of `--cron`, `--every` and `--at`. Intervals are counted from the Unix epoch.
    The command doesn't load your app, so it doesn't know the task's `@app.task` options. Pass the
    queue and timeout that the task needs. Prints the next three runs.

    JSON: `schedule` and `next`.
    """
    row = ctx.admin.schedules.create(name, task, ctx.by, **fields)
    return _report(ctx, row, "created")


def update(
    ctx: CommandContext, name: Name, *, task: TaskName = None, fields: dict[str, Any]
) -> int:
    """Change a schedule.

    Omitted options are unchanged. Runs that are already due under the old definition are recorded
    first. With `--task`, jobs get only the options you pass.

    If code declares the schedule, you can change only `--missed`, `--missed-within`,
    `--missed-limit` and `--jitter`. The value `declared` restores the code's value.

    JSON: `schedule` and `next`.
    """
    known(ctx.admin, name)
    changes = fields if task is None else {"task": task, **fields}
    return _report(ctx, ctx.admin.schedules.update(name, ctx.by, **changes), "updated")


def add_commands(app: typer.Typer) -> None:
    """Add both commands to `tenure schedule`."""
    operator_command(
        app,
        "create",
        example="tenure schedule create daily-report reports.sales --cron '0 9 * * *'",
        fields=_fields(update=False),
        changes=True,
    )(create)
    operator_command(
        app,
        "update",
        example="tenure schedule update daily-report --missed all",
        fields=_fields(update=True),
        changes=True,
    )(update)


def _report(ctx: CommandContext, row: "ScheduleRow", verb: str) -> int:
    """Print the schedule and its next runs."""
    zone = row.timing.zone
    runs = ctx.admin.schedules.preview(row.name, count=3)
    if ctx.as_json:
        print_json({"schedule": schedule_output.as_data(row), "next": runs})
    elif runs:
        schedule_output.print_runs(runs, zone)
    policy = ", ".join(f"{name} {text}" for name, text in schedule_output.policies(row).items())
    print_note(
        f"{verb} {row.name}: {schedule_output.when(row.timing)} in {zone}, {row.job.task}; {policy}"
    )
    return Exit.DONE
