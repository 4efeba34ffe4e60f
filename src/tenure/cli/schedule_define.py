"""`tenure schedule create` and `update`: a schedule by its task's name, without the program."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from tenure.cli import schedule_output
from tenure.cli.errors import Exit
from tenure.cli.fields import (
    ARGS,
    JOB_FIELDS,
    admin_command,
    duration,
    moment,
    takes_fields,
)
from tenure.cli.options import CommandContext, parse_duration
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
        raise typer.BadParameter(f"{text!r} is neither a number nor 'declared'") from None


_FIELDS: Mapping[str, Any] = {
    "cron": Annotated[
        str | None,
        typer.Option(
            "--cron", metavar="TEXT", help="At these times by the zone's clock: 30 2 * * *."
        ),
    ],
    "every": duration("--every", "In the place of --cron, each:"),
    "at": moment("--at", "Once, then: 2030-01-31T09:00+01:00."),
    "timezone": Annotated[
        str | None,
        typer.Option("--timezone", metavar="ZONE", help="The zone of --cron: Europe/Berlin."),
    ],
    "args": ARGS,
    **JOB_FIELDS,
    "overlap": Annotated[
        OverlapName | None,
        typer.Option("--overlap", help="While the last tick's job has not ended."),
    ],
}


def _policies(*, declared: bool) -> dict[str, Any]:
    """The options of policies; with `declared`, each can also be given back to the code."""
    read = _or_declared if declared else lambda parser: parser
    or_declared = " declared," if declared else ""
    return {
        "missed": Annotated[
            (MissedOrDeclared if declared else MissedName) | None,
            typer.Option(
                "--missed",
                help="Which missed ticks still make a job"
                + ("." if declared else " (default: latest)."),
            ),
        ],
        "missed_within": duration(
            "--missed-within",
            f"Of missed ticks, those within:{or_declared}",
            parser=read(parse_duration),
        ),
        "missed_limit": Annotated[
            int | None,
            typer.Option(
                "--missed-limit",
                metavar="N",
                help="Of missed ticks, at most this many" + (", or declared." if declared else "."),
                parser=read(_number),
            ),
        ],
        "jitter": duration(
            "--jitter",
            f"Let jobs be due up to this much later:{or_declared}",
            parser=read(parse_duration),
        ),
    }


_TASK = Annotated[
    str | None, typer.Option("--task", metavar="NAME", help="Another task, by its name.")
]


@admin_command(changes=True)
@takes_fields({**_FIELDS, **_policies(declared=False)})
def create(
    context: CommandContext,
    name: Name,
    task: Annotated[str, typer.Argument(metavar="TASK", help="The task's name.")],
    *,
    fields: dict[str, Any],
) -> int:
    """Make a schedule of a task by its name; by one of --cron, --every and --at.

    The task's own options (queue, attempts, lease) are in the program that has it, and are not
    known here: say what differs from the defaults.
    """
    row = context.admin.schedules.create(name, task, context.by, **fields)
    return _report(context, row, "made")


@admin_command(changes=True)
@takes_fields({"task": _TASK, **_FIELDS, **_policies(declared=True)})
def update(context: CommandContext, name: Name, *, fields: dict[str, Any]) -> int:
    """Change what is given of a schedule, and leave the rest.

    Of one that code declares, the policies alone: --missed, --missed-within, --missed-limit and
    --jitter. The word `declared` gives one back to the code.
    """
    known(context.admin, name)
    row = context.admin.schedules.update(name, context.by, **fields)
    return _report(context, row, "changed")


def _report(context: CommandContext, row: "ScheduleRow", did: str) -> int:
    """Say what the schedule is now, and when it runs next."""
    zone = row.timing.zone
    runs = context.admin.schedules.preview(row.name, count=3)
    if context.as_json:
        print_json({"schedule": schedule_output.as_data(row), "next": runs})
    elif runs:
        schedule_output.print_runs(runs, zone)
    policy = ", ".join(f"{name} {text}" for name, text in schedule_output.policies(row).items())
    print_note(
        f"{did} {row.name}: {schedule_output.when(row.timing)} in {zone}, {row.job.task}; {policy}"
    )
    return Exit.DONE
