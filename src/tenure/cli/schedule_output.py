"""A schedule and its times, printed."""

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
    from tenure.types import AuditRow, ScheduleRow, TickRow, Timing


Name = Annotated[str, typer.Argument(metavar="NAME", help="The schedule's name.")]


def known(admin: "Admin", name: str) -> "ScheduleRow":
    """The schedule of this name; a failure with what to do if there is none."""
    row = admin.schedules.get(name)
    if row is None:
        raise CommandError(
            f"there is no schedule {name}",
            "it never was, it was deleted, or no worker of its program has started yet",
            "see which there are: tenure schedule list",
            Exit.NOT_FOUND,
        )
    return row


def when(timing: "Timing") -> str:
    """The times, as they would be said to `create`."""
    from tenure.admin import compact

    if timing.cron is not None:
        return timing.cron
    if timing.every is not None:
        return f"every {compact(timing.every)}"
    return "once" if timing.at is None else f"at {timing.at.isoformat()}"


def local(instant: datetime | None, zone: str) -> str | None:
    """An instant by the clock of a zone, with its offset."""
    if instant is None:
        return None
    there = instant.astimezone(ZoneInfo(zone))
    return f"{there:%Y-%m-%d %H:%M:%S%z}"


def _there(instant: datetime, zone: str) -> str | None:
    """The same for a table that has the instant in UTC too."""
    return None if zone == "UTC" else local(instant, zone)


def policies(row: "ScheduleRow") -> Mapping[str, str]:
    """The policies in force; a * marks those that an operator set over the code's."""
    from tenure.admin import compact

    shown = {}
    for field in fields(row.in_force):
        value = getattr(row.in_force, field.name)
        star = "*" if getattr(row.set_policy, field.name, None) is not None else ""
        text = compact(value) if isinstance(value, timedelta) else str(value)
        shown[field.name] = f"{text}{star}"
    return shown


def overridden(row: "ScheduleRow") -> str | None:
    """The policies that an operator set over the code's."""
    starred = [(name, text) for name, text in policies(row).items() if text.endswith("*")]
    return ", ".join(f"{name}={text}" for name, text in starred) or None


def state(row: "ScheduleRow") -> str:
    """The state, and how long it lasts if that is known."""
    if row.paused_at is None or row.paused_until is None:
        return str(row.state)
    return f"{row.state} until {local(row.paused_until, row.timing.zone)}"


def print_runs(runs: "Sequence[Run]", zone: str) -> None:
    """Runs that are to come, with the days on which the clock is changed."""
    print_table(
        (zone, "UTC", "due", "clock change", "paused"),
        [
            (
                _there(run.local, zone),
                run.fire_at,
                run.run_at if run.run_at != run.fire_at else None,
                clock_change(run),
                "paused" if run.paused else None,
            )
            for run in runs
        ],
    )


def clock_change(run: "Run") -> str | None:
    """What the clock does on a run's day, and whether the run stands for a time it left out."""
    if run.shift is None:
        return None
    shown, becomes = run.shift.shown, run.shift.becomes
    kind = "gap" if becomes > shown else "overlap"
    moved = "; moved to its end" if run.moved else ""
    return f"{kind}: {shown:%H:%M} becomes {becomes:%H:%M}{moved}"


def print_ticks(ticks: "Sequence[TickRow]", zone: str) -> None:
    """Past runs, with what each came to."""
    print_table(
        (zone, "UTC", "outcome", "reason", "job", "recorded"),
        [
            (
                _there(tick.fire_at, zone),
                tick.fire_at,
                tick.outcome,
                tick.reason,
                tick.job_id,
                tick.recorded_at,
            )
            for tick in ticks
        ],
    )


def print_audit(audit: "Sequence[AuditRow]") -> None:
    """What was done to it, by whom and why."""
    print_table(
        ("at", "by", "from", "action", "reason"),
        [(row.at, row.actor, row.source, row.action, row.reason) for row in audit],
    )


def as_data(row: "ScheduleRow") -> Mapping[str, object]:
    """A schedule for programs: the row, and the policy in force."""
    from tenure.admin import to_json

    return {**to_json(row), "in_force": to_json(row.in_force)}
