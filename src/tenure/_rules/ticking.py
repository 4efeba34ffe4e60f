"""What the due ticks of a schedule come to: a job each, or the reason why not. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import blake2b
from itertools import islice

from tenure._model.schedule import (
    Missed,
    Overlap,
    Policy,
    ScheduleRow,
    Tick,
    TickReason,
    Timing,
)
from tenure._rules import timing as rules

_SOON = timedelta(seconds=5)
_LONG = timedelta(seconds=60)
_INSTANT = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Judged:
    """The ticks of one schedule that are accounted for now, and the first that is not."""

    ticks: Sequence[Tick]
    next_at: datetime | None


def judge(schedule: ScheduleRow, *, now: datetime, live: bool, most: int) -> Judged:
    """Judge the ticks that are due, the oldest first, at most so many.

    `live` says that the job of the last tick that fired has not ended.
    """
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
    return Judged(ticks, at)


def is_missed(fire_at: datetime, successor: datetime | None, now: datetime) -> bool:
    """Whether a tick has been missed, and is not merely late: once its successor is due, but not
    within 5 s, and in any case after 60 s."""
    room = _LONG if successor is None else min(max(successor - fire_at, _SOON), _LONG)
    return now - fire_at > room


def due_at(name: str, fire_at: datetime, jitter: timedelta) -> datetime:
    """When the job of a tick is due: up to the jitter later, by a share that is the tick's own."""
    if not jitter:
        return fire_at
    digest = blake2b(f"{name} {fire_at.timestamp()}".encode(), digest_size=8).digest()
    return fire_at + jitter * (int.from_bytes(digest) / 2**64)


def _made_up_from(timing: Timing, policy: Policy, first: datetime, now: datetime) -> datetime:
    """The first tick that is still made up for, of those that were missed, from the first on."""
    if policy.missed is Missed.SKIP:
        return now + _INSTANT
    most = 1 if policy.missed is Missed.LATEST else policy.missed_most
    earliest = now - policy.missed_within if policy.missed is Missed.ALL else first
    found = now + _INSTANT
    for tick in islice(rules.backward(timing, now), most):
        if tick < max(earliest, first):
            break
        found = tick
    return found


def is_paused(schedule: ScheduleRow, fire_at: datetime) -> bool:
    """Whether a tick falls into the schedule's pause; what was due before it and is not accounted
    for does too."""
    if schedule.paused_at is None:
        return False
    return schedule.paused_until is None or fire_at < schedule.paused_until


def _skipped(fire_at: datetime, reason: TickReason) -> Tick:
    return Tick(fire_at=fire_at, reason=reason)
