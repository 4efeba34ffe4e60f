"""Print schedules and their runs."""

from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated
from zoneinfo import ZoneInfo

import typer

from tenure.cli.errors import CommandError, Exit
from tenure.cli.output import print_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenure.admin import Admin, Run
    from tenure.types import ScheduleRow, TickRow, Timing


Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the schedule.")]


def known(admin: "Admin", name: str) -> "ScheduleRow":
    """Return the schedule, or raise an error if it doesn't exist."""
    row = admin.schedules.get(name)
    if row is None:
        raise CommandError(
            f"schedule {name} does not exist",
            "the name is wrong, it was deleted, or no worker of its program has started yet",
            "list the schedules: tenure schedule list",
            Exit.NOT_FOUND,
        )
    return row


def when(timing: "Timing") -> str:
    """Return the schedule's times in the format that `create` accepts."""
    from tenure.admin import compact

    if timing.cron is not None:
        return timing.cron
    if timing.every is not None:
        return f"every {compact(timing.every)}"
    return "once" if timing.at is None else f"at {timing.at.isoformat()}"


def local(instant: datetime | None, zone: str) -> str | None:
    """Return a time in a zone, with its offset."""
    if instant is None:
        return None
    moment = instant.astimezone(ZoneInfo(zone))
    return f"{moment:%Y-%m-%d %H:%M:%S%z}"


def _local_unless_utc(instant: datetime, zone: str) -> str | None:
    """Return the local time for a table that also has it in UTC."""
    return None if zone == "UTC" else local(instant, zone)


def policies(row: "ScheduleRow") -> Mapping[str, str]:
    """Return the policies in force. A * marks one that an operator overrode."""
    from tenure.admin import compact

    shown = {}
    for field in fields(row.in_force):
        value = getattr(row.in_force, field.name)
        star = "*" if getattr(row.set_policy, field.name, None) is not None else ""
        text = compact(value) if isinstance(value, timedelta) else str(value)
        shown[field.name] = f"{text}{star}"
    return shown


def overridden(row: "ScheduleRow") -> str | None:
    """Return the policies that an operator overrode."""
    starred = [(name, text) for name, text in policies(row).items() if text.endswith("*")]
    return ", ".join(f"{name}={text}" for name, text in starred) or None


def state(row: "ScheduleRow") -> str:
    """Return the state and, if the pause is temporary, when it ends."""
    if row.paused_at is None or row.paused_until is None:
        return str(row.state)
    return f"{row.state} until {local(row.paused_until, row.timing.zone)}"


def print_runs(runs: "Sequence[Run]", zone: str) -> None:
    """Print upcoming runs, and mark days with a clock change."""
    print_table(
        (zone, "UTC", "due", "clock change", "paused"),
        [
            (
                _local_unless_utc(run.local, zone),
                run.fire_at,
                run.run_at if run.run_at != run.fire_at else None,
                clock_change(run),
                "paused" if run.paused else None,
            )
            for run in runs
        ],
    )


def clock_change(run: "Run") -> str | None:
    """Return the clock change on a run's day, and whether it moved the run."""
    if run.shift is None:
        return None
    shown, becomes = run.shift.shown, run.shift.becomes
    kind = "gap" if becomes > shown else "overlap"
    moved = "; moved to its end" if run.moved else ""
    return f"{kind}: {shown:%H:%M} becomes {becomes:%H:%M}{moved}"


def print_ticks(ticks: "Sequence[TickRow]", zone: str) -> None:
    """Print past runs with their results."""
    print_table(
        (zone, "UTC", "outcome", "reason", "job", "recorded"),
        [
            (
                _local_unless_utc(tick.fire_at, zone),
                tick.fire_at,
                tick.outcome,
                tick.reason,
                tick.job_id,
                tick.recorded_at,
            )
            for tick in ticks
        ],
    )


def as_data(row: "ScheduleRow") -> Mapping[str, object]:
    """Return a schedule for JSON: the row, and the policies in force."""
    from tenure.admin import to_json

    return {**to_json(row), "in_force": to_json(row.in_force)}
