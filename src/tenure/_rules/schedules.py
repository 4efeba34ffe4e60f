"""Schedule validation, which ticks create jobs, and what a deploy changes."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from hashlib import blake2b
from itertools import islice
from typing import Any, TypeVar

from tenure._model.ids import Json
from tenure._model.job import NewJob
from tenure._model.schedule import (
    DeclareResult,
    Missed,
    NewSchedule,
    Overlap,
    Policy,
    PolicyChange,
    ScheduleRow,
    Tick,
    TickReason,
    Timing,
)
from tenure._rules import payload, timing
from tenure._rules import timing as rules
from tenure._rules.serialization import dump
from tenure.config import LONGEST_WAIT
from tenure.errors import InvalidValue

LONGEST_JITTER = timedelta(days=1)
MOST_MISSED = 10_000
Word = TypeVar("Word", bound=StrEnum)


def check(new: NewSchedule) -> None:
    """Reject a schedule that can't be stored, shown or fired (InvalidValue)."""
    payload.check_name(new.name, "schedule")
    timing.check(new.timing)
    _check_job(new.job)
    check_policy(new.policy)


def check_policy(policy: Policy | PolicyChange) -> None:
    within, most, jitter = policy.missed_within, policy.missed_limit, policy.jitter
    if within is not None and not timedelta(0) < within <= LONGEST_WAIT:
        raise InvalidValue(
            f"missed_within must be positive and at most {LONGEST_WAIT.days:,} days, got {within}; "
            'to skip missed ticks, write missed="skip"'
        )
    if most is not None and not 1 <= most <= MOST_MISSED:
        raise InvalidValue(
            f"missed_limit must be 1 to {MOST_MISSED:,}, got {most}; to skip missed ticks, "
            'write missed="skip"'
        )
    if jitter is not None and not timedelta(0) <= jitter <= LONGEST_JITTER:
        raise InvalidValue(f"jitter must be 0 to 86,400 seconds, got {jitter}")


def unknown(name: str) -> InvalidValue:
    return InvalidValue(f"schedule {name!r} does not exist; list them with: tenure schedule list")


def word(kind: type[Word], value: str, what: str) -> Word:
    """Return the enum member; raise InvalidValue listing the possible values."""
    try:
        return kind(value)
    except ValueError:
        words = ", ".join(repr(str(each)) for each in kind)
        raise InvalidValue(f"{what} must be one of {words}, got {value!r}") from None


def _check_job(job: NewJob) -> None:
    payload.check(job)
    payload.encode(job.args)
    payload.encode(job.meta, what="the meta fields")
    if job.run_at is not None or job.delay is not None or job.key is not None:
        raise InvalidValue(
            "the job of a schedule cannot have run_at, delay or key: its ticks set them; omit them"
        )


_SOON = timedelta(seconds=5)
_LONG = timedelta(seconds=60)
_INSTANT = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class TickDecisions:
    """The ticks of a schedule that are decided now, and the first one that isn't."""

    ticks: Sequence[Tick]
    next_at: datetime | None


def decide_ticks(schedule: ScheduleRow, *, now: datetime, live: bool, most: int) -> TickDecisions:
    """Decide the due ticks, oldest first. `live` means that the last fired job hasn't ended."""
    policy = schedule.in_force
    made_up: datetime | None = None
    ticks: list[Tick] = []
    at = schedule.next_at
    later = iter(()) if at is None else rules.forward(schedule.timing, at)
    while at is not None and at <= now and len(ticks) < most:
        successor = next(later, None)
        missed = is_missed(at, successor, now)
        if missed and made_up is None:
            made_up = _made_up_from(schedule.timing, policy, at, now)
        if is_paused(schedule, at):
            tick = _skipped(at, TickReason.PAUSED)
        elif missed and made_up is not None and at < made_up:
            tick = _skipped(at, TickReason.MISSED)
        elif live and policy.overlap is Overlap.SKIP:
            tick = _skipped(at, TickReason.OVERLAP)
        else:
            live = True
            tick = Tick(
                fire_at=at,
                reason=TickReason.LATE if missed else None,
                run_at=due_at(schedule.name, at, policy.jitter),
            )
        ticks.append(tick)
        at = successor
    return TickDecisions(ticks, at)


def is_missed(fire_at: datetime, successor: datetime | None, now: datetime) -> bool:
    """Return whether a tick is late by more than its interval.

    Intervals shorter than 5 s count as 5 s, and those longer than 60 s count as 60 s.
    """
    room = _LONG if successor is None else min(max(successor - fire_at, _SOON), _LONG)
    return now - fire_at > room


def due_at(name: str, fire_at: datetime, jitter: timedelta) -> datetime:
    """Return when a tick's job is due.

    The delay is at most `jitter` and is always the same for a given tick.
    """
    if not jitter:
        return fire_at
    digest = blake2b(f"{name} {fire_at.timestamp()}".encode(), digest_size=8).digest()
    return fire_at + jitter * (int.from_bytes(digest) / 2**64)


def _made_up_from(timing: Timing, policy: Policy, first: datetime, now: datetime) -> datetime:
    """Return the first missed tick that still creates a job."""
    if policy.missed is Missed.SKIP:
        return now + _INSTANT
    most = 1 if policy.missed is Missed.LATEST else policy.missed_limit
    earliest = now - policy.missed_within if policy.missed is Missed.ALL else first
    earliest_fired = now + _INSTANT
    for tick in islice(rules.backward(timing, now), most):
        if tick < max(earliest, first):
            break
        earliest_fired = tick
    return earliest_fired


def is_paused(schedule: ScheduleRow, fire_at: datetime) -> bool:
    """Return whether a tick falls within the pause, or was due before it but undecided."""
    if schedule.paused_at is None:
        return False
    return schedule.paused_until is None or fire_at < schedule.paused_until


def _skipped(fire_at: datetime, reason: TickReason) -> Tick:
    return Tick(fire_at=fire_at, reason=reason)


def as_stored(schedule: NewSchedule) -> NewSchedule:
    """Return the definition as it will be read back, after checking it."""
    payload.check_name(schedule.name, "schedule")
    payload.check(schedule.job)
    args, meta = payload.encode(schedule.job.args), payload.encode(schedule.job.meta)
    job = replace(schedule.job, args=json.loads(args), meta=json.loads(meta))
    at = schedule.timing.at
    when = replace(schedule.timing, at=None if at is None else at.astimezone(UTC))
    return replace(schedule, job=job, timing=when)


def definition(schedule: ScheduleRow | NewSchedule) -> dict[str, Json]:
    parts: dict[str, Any] = {
        **asdict(schedule.timing),
        **asdict(schedule.policy),
        **asdict(schedule.job),
    }
    result: dict[str, Json] = dump({k: v for k, v in parts.items() if v not in (None, {})})
    return result


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclarationPlan:
    """Schedules that a starting program changes. Those in `confirmed` only get the new version."""

    made: tuple[str, ...]
    changed: tuple[str, ...]
    retired: tuple[str, ...]
    confirmed: tuple[str, ...]
    newer: tuple[str, ...]

    @property
    def locked(self) -> tuple[str, ...]:
        """Return the existing schedules to be written."""
        return (*self.changed, *self.retired, *self.confirmed)

    @property
    def touched(self) -> tuple[str, ...]:
        return (*self.made, *self.locked)

    @property
    def answer(self) -> DeclareResult:
        return DeclareResult(
            made=self.made, changed=self.changed, retired=self.retired, newer=self.newer
        )


def plan(
    program: str,
    version: tuple[int, ...],
    wanted: Mapping[str, NewSchedule],
    rows: Mapping[str, ScheduleRow],
) -> DeclarationPlan:
    """Plan which schedules a starting program changes.

    Keep anything that was written by a newer version of the program.

    If a newer version has declared schedules, this version doesn't create or take over any.
    """
    overtaken = any(
        row.program == program and row.program_version > version for row in rows.values()
    )
    new = [name for name in wanted if name not in rows]
    parts: dict[str, list[str]] = {
        "made": [] if overtaken else new,
        "changed": [],
        "retired": [],
        "confirmed": [],
        "newer": new if overtaken else [],
    }
    for name, row in rows.items():
        if row.program_version > version if row.program == program else overtaken:
            parts["newer"].append(name)
        elif name not in wanted:
            parts["retired"].append(name)
        elif row.program != program or _differs(row, wanted[name]):
            parts["changed"].append(name)
        elif row.program_version < version:
            parts["confirmed"].append(name)
    return DeclarationPlan(**{part: tuple(sorted(names)) for part, names in parts.items()})


def _differs(row: ScheduleRow, wanted: NewSchedule) -> bool:
    if row.retired_at is not None:
        return True
    return (row.timing, row.policy, row.job) != (wanted.timing, wanted.policy, wanted.job)
