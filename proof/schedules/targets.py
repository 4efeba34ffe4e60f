"""What should have happened: a schedule's life as the proof itself arranged it, and the instants
that follow from it. Knows nothing of Tenure's own arithmetic: crons are walked minute by minute,
intervals are divided."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING

from proof.schedules.walking import walk

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenure._model.schedule import Policy, Timing

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FOREVER = datetime(9999, 1, 1, tzinfo=UTC)
_BEYOND = timedelta(minutes=10)


@dataclass(frozen=True)
class Stretch:
    """One definition and while it was in force: ticks after the one instant and up to the other.
    Those after `sure_after` and up to `sure` must be accounted for; those before and later may."""

    timing: Timing
    policy: Policy
    after: datetime
    sure: datetime
    until: datetime = FOREVER
    sure_after: datetime = EPOCH

    @cached_property
    def ticks(self) -> list[datetime]:
        """The definition's ticks in order, from its beginning to some way beyond what is sure."""
        return instants(self.timing, self.after, self.sure + _BEYOND)

    @cached_property
    def instants(self) -> list[datetime]:
        """Those of them that are while it was in force."""
        return self.ticks[: bisect_right(self.ticks, self.until)]

    def due(self, after: datetime, until: datetime) -> int:
        """How many ticks there are after one instant and up to another."""
        return max(0, bisect_right(self.ticks, until) - bisect_right(self.ticks, after))

    def successor(self, tick: datetime) -> datetime:
        """The tick after a tick; far away, if it is not soon."""
        index = bisect_right(self.ticks, tick)
        return self.ticks[index] if index < len(self.ticks) else FOREVER


@dataclass(frozen=True, slots=True)
class Pause:
    """While a schedule was paused: ticks up to the one instant that were not accounted for at the
    other, when it was paused."""

    since: datetime
    until: datetime = FOREVER


@dataclass(frozen=True, slots=True)
class Target:
    """One schedule: what it was from when to when, and its pauses."""

    name: str
    stretches: Sequence[Stretch]
    pauses: Sequence[Pause] = ()


def instants(timing: Timing, after: datetime, until: datetime) -> list[datetime]:
    """The ticks after one instant and up to another."""
    if timing.at is not None:
        return [timing.at] if after < timing.at <= until else []
    if timing.every is not None:
        first = (after - EPOCH) // timing.every + 1
        last = (until - EPOCH) // timing.every
        return [EPOCH + n * timing.every for n in range(first, last + 1)]
    assert timing.cron is not None
    return walk(timing.cron, timing.zone, after, until)
