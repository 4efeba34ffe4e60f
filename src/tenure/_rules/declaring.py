"""What a schedule's definition is, and what a program's start changes of those there are. Pure."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC
from typing import Any

from tenure._model.ids import Json
from tenure._model.schedule import Declaring, NewSchedule, ScheduleRow
from tenure._rules import payload
from tenure._rules.values import dump


def as_stored(schedule: NewSchedule) -> NewSchedule:
    """The definition as it will be read back, checked: what a job may be, a schedule's may."""
    payload.check_name(schedule.name, "schedule")
    payload.check(schedule.job)
    args, meta = payload.encode(schedule.job.args), payload.encode(schedule.job.meta)
    job = replace(schedule.job, args=json.loads(args), meta=json.loads(meta))
    at = schedule.timing.at
    when = replace(schedule.timing, at=None if at is None else at.astimezone(UTC))
    return replace(schedule, job=job, timing=when)


def definition(schedule: ScheduleRow | NewSchedule) -> dict[str, Json]:
    """What defines a schedule, as JSON for the audit."""
    parts: dict[str, Any] = {
        **asdict(schedule.timing),
        **asdict(schedule.policy),
        **asdict(schedule.job),
    }
    said: dict[str, Json] = dump({k: v for k, v in parts.items() if v not in (None, {})})
    return said


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a program's start has to change, by name; `vouched` are as an older version left them,
    and right."""

    made: tuple[str, ...]
    changed: tuple[str, ...]
    retired: tuple[str, ...]
    vouched: tuple[str, ...]
    newer: tuple[str, ...]

    @property
    def locked(self) -> tuple[str, ...]:
        """Those that are there, and to be written."""
        return (*self.changed, *self.retired, *self.vouched)

    @property
    def touched(self) -> tuple[str, ...]:
        """All that are to be written."""
        return (*self.made, *self.locked)

    @property
    def answer(self) -> Declaring:
        """What the program is told."""
        return Declaring(
            made=self.made, changed=self.changed, retired=self.retired, newer=self.newer
        )


def plan(
    program: str,
    version: tuple[int, ...],
    wanted: Mapping[str, NewSchedule],
    found: Mapping[str, ScheduleRow],
) -> Plan:
    """What a program's start has to change. What a newer version of it wrote is not touched; a
    schedule that another program declared, or that was made at run time, is taken over. Where a
    newer version has declared schedules, this one makes and takes over none: what is not there,
    the newer one does not declare."""
    overtaken = any(
        row.program == program and row.program_version > version for row in found.values()
    )
    new = [name for name in wanted if name not in found]
    parts: dict[str, list[str]] = {
        "made": [] if overtaken else new,
        "changed": [],
        "retired": [],
        "vouched": [],
        "newer": new if overtaken else [],
    }
    for name, row in found.items():
        if row.program_version > version if row.program == program else overtaken:
            parts["newer"].append(name)
        elif name not in wanted:
            parts["retired"].append(name)
        elif row.program != program or _differs(row, wanted[name]):
            parts["changed"].append(name)
        elif row.program_version < version:
            parts["vouched"].append(name)
    return Plan(**{part: tuple(sorted(names)) for part, names in parts.items()})


def _differs(row: ScheduleRow, wanted: NewSchedule) -> bool:
    if row.retired_at is not None:
        return True
    return (row.timing, row.policy, row.job) != (wanted.timing, wanted.policy, wanted.job)
