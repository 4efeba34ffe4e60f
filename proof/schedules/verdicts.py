"""The result of a policy for a tick, computed independently of Tenure's own rules."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from tenure._model.schedule import Missed, Overlap

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from proof.schedules.targets import Stretch, Target

# A tick is merely late until its successor is due, but for at least 5 s and at most 60 s.
AT_LEAST = timedelta(seconds=5)
AT_MOST = timedelta(seconds=60)

FIRED, LATE, MISSED, PAUSED, OVERLAP = "fired", "fired late", "missed", "paused", "overlap"


class Verdicts:
    """Judges the ticks of one target. `slack` is how much later than the judgement a row's time
    may be: where the two lie on different sides of an edge, both verdicts are right."""

    def __init__(self, target: Target, *, slack: timedelta) -> None:
        self._target = target
        self._slack = slack

    def allowed(
        self,
        stretch: Stretch,
        fire_at: datetime,
        at: datetime,
        busy: Callable[[datetime, datetime], bool],
    ) -> set[str]:
        """What a tick may come to that was recorded at this time. A verdict changes but once in
        time, so that the edges of the slack show all there are."""
        times = {at, max(fire_at, at - self._slack)}
        values = {self._verdict(stretch, fire_at, time) for time in times}
        if stretch.policy.overlap is Overlap.SKIP and values & {FIRED, LATE}:
            live = {busy(fire_at, time) for time in times}
            if live == {True}:
                values -= {FIRED, LATE}
            if True in live:
                values.add(OVERLAP)
        return values

    def _verdict(self, stretch: Stretch, fire_at: datetime, at: datetime) -> str:
        if any(pause.since <= at and fire_at <= pause.until for pause in self._target.pauses):
            return PAUSED
        room = min(max(stretch.successor(fire_at) - fire_at, AT_LEAST), AT_MOST)
        if at - fire_at <= room:
            return FIRED
        policy = stretch.policy
        later = stretch.due(fire_at, at)
        if policy.missed is Missed.ALL:
            gone = at - fire_at > policy.missed_within or later >= policy.missed_limit
        else:
            gone = policy.missed is Missed.SKIP or later > 0
        return MISSED if gone else LATE
