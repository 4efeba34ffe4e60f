"""`tenure schedule create` and `update`: a schedule by its task's name, without the program."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tenure.cli import schedule_output
from tenure.cli.errors import Exit
from tenure.cli.options import (
    AsJson,
    DatabaseUrl,
    Reason,
    SchemaName,
    Who,
    actor,
    arguments,
    connect_admin,
    duration_option,
    instant,
    parse_duration,
)
from tenure.cli.output import print_json, print_note
from tenure.cli.schedule_output import Name, known

if TYPE_CHECKING:
    from tenure.admin import Admin
    from tenure.types import ScheduleRow

_DECLARED = "declared"


class MissedName(StrEnum):
    """The policies for missed ticks by name; a test holds them to be the same."""

    SKIP = "skip"
    LATEST = "latest"
    ALL = "all"


class MissedOrDeclared(StrEnum):
    """The same, and giving it back to the code."""

    SKIP = "skip"
    LATEST = "latest"
    ALL = "all"
    DECLARED = "declared"


class OverlapName(StrEnum):
    """The policies for overlapping runs by name."""

    ALLOW = "allow"
    SKIP = "skip"


def _policy(flag: str, text: str) -> Any:
    return typer.Option(flag, metavar="SECONDS", help=f"{text} 90s, 5m, 1h30m or 1d.")


Cron = Annotated[
    str | None,
    typer.Option("--cron", metavar="TEXT", help="At these times by the zone's clock: 30 2 * * *."),
]
Every = Annotated[str | None, duration_option("--every", "In the place of --cron, each:")]
At = Annotated[
    str | None,
    typer.Option("--at", metavar="INSTANT", help="Once, then: 2030-01-31T09:00+01:00."),
]
Timezone = Annotated[
    str | None,
    typer.Option("--timezone", metavar="ZONE", help="The zone of --cron: Europe/Berlin."),
]
Args = Annotated[
    str | None,
    typer.Option("--args", metavar="JSON", help="The arguments by name; - reads stdin."),
]
Queue = Annotated[
    str | None, typer.Option("-q", "--queue", metavar="NAME", help="The queue its jobs go into.")
]
Priority = Annotated[
    int | None, typer.Option("--priority", metavar="0-9", help="9 is the most urgent.")
]
MaxAttempts = Annotated[
    int | None, typer.Option("--max-attempts", metavar="N", help="How often each is tried.")
]
Timeout = Annotated[str | None, duration_option("--timeout", "How long an attempt may run:")]
ExpiresIn = Annotated[
    str | None, duration_option("--expires-in", "How long a job is worth starting:")
]
Tags = Annotated[
    list[str] | None,
    typer.Option("--tag", metavar="TEXT", help="A word to find its jobs by; may be repeated."),
]
OverlapOption = Annotated[
    OverlapName | None,
    typer.Option("--overlap", help="While the last tick's job has not ended."),
]
_WITHIN = "Of missed ticks, those within:"
_MOST = "Of missed ticks, so many at the most."
_JITTER = "Let jobs be due up to this much later:"


def create(
    name: Name,
    task: Annotated[str, typer.Argument(metavar="TASK", help="The task's name.")],
    *,
    cron: Cron = None,
    every: Every = None,
    at: At = None,
    timezone: Timezone = None,
    args: Args = None,
    queue: Queue = None,
    priority: Priority = None,
    max_attempts: MaxAttempts = None,
    timeout: Timeout = None,
    expires_in: ExpiresIn = None,
    tags: Tags = None,
    missed: Annotated[
        MissedName, typer.Option("--missed", help="Which missed ticks still make a job.")
    ] = MissedName.LATEST,
    missed_within: Annotated[str | None, _policy("--missed-within", _WITHIN)] = None,
    missed_most: Annotated[
        int | None, typer.Option("--missed-most", metavar="N", help=_MOST)
    ] = None,
    overlap: OverlapOption = None,
    jitter: Annotated[str | None, _policy("--jitter", _JITTER)] = None,
    reason: Reason = None,
    who: Who = None,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    schema: SchemaName = None,
) -> int:
    """Make a schedule of a task by its name; by one of --cron, --every and --at.

    The task's own options (queue, attempts, lease) are in the program that has it, and are not
    known here: say what differs from the defaults.
    """
    said = {
        "cron": cron,
        "every": parse_duration(every),
        "at": instant(at),
        "timezone": timezone,
        "args": None if args is None else arguments(args),
        "queue": queue,
        "priority": priority,
        "max_attempts": max_attempts,
        "timeout": parse_duration(timeout),
        "expires_in": parse_duration(expires_in),
        "tags": tags,
        "missed": missed.value,
        "missed_within": parse_duration(missed_within),
        "missed_most": missed_most,
        "overlap": None if overlap is None else overlap.value,
        "jitter": parse_duration(jitter),
    }
    with connect_admin(database_url, schema) as admin:
        row = admin.schedules.create(name, task, actor(who, reason), **_given(said))
        _report(admin, row, "made", as_json=as_json)
    return Exit.DONE


def update(
    name: Name,
    *,
    task: Annotated[
        str | None, typer.Option("--task", metavar="NAME", help="Another task, by its name.")
    ] = None,
    cron: Cron = None,
    every: Every = None,
    at: At = None,
    timezone: Timezone = None,
    args: Args = None,
    queue: Queue = None,
    priority: Priority = None,
    max_attempts: MaxAttempts = None,
    timeout: Timeout = None,
    expires_in: ExpiresIn = None,
    tags: Tags = None,
    missed: Annotated[
        MissedOrDeclared | None,
        typer.Option("--missed", help="Which missed ticks still make a job."),
    ] = None,
    missed_within: Annotated[str | None, _policy("--missed-within", f"{_WITHIN} declared,")] = None,
    missed_most: Annotated[
        str | None, typer.Option("--missed-most", metavar="N", help=f"{_MOST} Or declared.")
    ] = None,
    overlap: OverlapOption = None,
    jitter: Annotated[str | None, _policy("--jitter", f"{_JITTER} declared,")] = None,
    reason: Reason = None,
    who: Who = None,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    schema: SchemaName = None,
) -> int:
    """Change what is given of a schedule, and leave the rest.

    Of one that code declares, the policies alone: --missed, --missed-within, --missed-most and
    --jitter. The word `declared` gives one back to the code.
    """
    said = {
        "task": task,
        "cron": cron,
        "every": parse_duration(every),
        "at": instant(at),
        "timezone": timezone,
        "args": None if args is None else arguments(args),
        "queue": queue,
        "priority": priority,
        "max_attempts": max_attempts,
        "timeout": parse_duration(timeout),
        "expires_in": parse_duration(expires_in),
        "tags": tags,
        "missed": None if missed is None else missed.value,
        "missed_within": _or_declared(missed_within, parse_duration),
        "missed_most": _or_declared(missed_most, _number),
        "overlap": None if overlap is None else overlap.value,
        "jitter": _or_declared(jitter, parse_duration),
    }
    with connect_admin(database_url, schema) as admin:
        known(admin, name)
        row = admin.schedules.update(name, actor(who, reason), **_given(said))
        _report(admin, row, "changed", as_json=as_json)
    return Exit.DONE


def _given(said: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in said.items() if value is not None}


def _or_declared(text: str | None, read: Any) -> Any:
    return text if text in (None, _DECLARED) else read(text)


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is neither a number nor 'declared'") from None


def _report(admin: "Admin", row: "ScheduleRow", did: str, *, as_json: bool) -> None:
    """Say what the schedule is now, and when it runs next."""
    zone = row.timing.zone
    runs = admin.schedules.preview(row.name, count=3)
    if as_json:
        print_json({"schedule": schedule_output.as_data(row), "next": runs})
    elif runs:
        schedule_output.print_runs(runs, zone)
    policy = ", ".join(f"{name} {text}" for name, text in schedule_output.policies(row).items())
    print_note(
        f"{did} {row.name}: {schedule_output.when(row.timing)} in {zone}, {row.job.task}; {policy}"
    )
