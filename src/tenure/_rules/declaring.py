"""What a schedule's definition is, and what a program's start changes of those there are. Pure."""

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
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
    """What defines a schedule, as JSON: to compare, and for the audit."""
    parts: dict[str, Any] = {
        **asdict(schedule.timing),
        **asdict(schedule.policy),
        **asdict(schedule.job),
    }
    said: dict[str, Json] = dump({k: v for k, v in parts.items() if v not in (None, {})})
    return said


def plan(
    program: str,
    version: tuple[int, ...],
    wanted: Mapping[str, NewSchedule],
    found: Mapping[str, ScheduleRow],
) -> Declaring:
    """What a program's start has to change. What a newer version of it wrote is not touched; a
    schedule that another program declared, or that was made at run time, is taken over."""
    newer = {
        name
        for name, row in found.items()
        if row.program == program and tuple(row.program_version) > version
    }
    return Declaring(
        made=tuple(sorted(wanted.keys() - found.keys())),
        changed=tuple(
            sorted(
                name
                for name, row in found.items()
                if name in wanted and name not in newer
                if row.program != program or _differs(row, wanted[name])
            )
        ),
        retired=tuple(sorted(found.keys() - wanted.keys() - newer)),
        newer=tuple(sorted(newer)),
    )


def _differs(row: ScheduleRow, wanted: NewSchedule) -> bool:
    return row.retired_at is not None or definition(row) != definition(wanted)
