"""When a slot was free: a lost job cannot run elsewhere while every place there is taken."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from uuid import UUID

    from proof.crash.harness import Bed
    from proof.crash.losses import Blow

_STEP = timedelta(milliseconds=20)
# A worker elsewhere is registered by the server, at a beat that may come after its end.
_REGISTERED_WITHIN = timedelta(seconds=10)
_HELD = "SELECT a.claimed_by, a.started_at, a.ended_at FROM tenure.attempt AS a"
_CHILDREN = "SELECT w.id, w.pid, w.started_at FROM tenure.worker AS w"


class Slots:
    """The slots of every child that lived, and what was in them; by the database's clock."""

    def __init__(self, bed: Bed, blows: Sequence[Blow]) -> None:
        self._slots = bed.fleet.shape.slots
        self._held: dict[UUID, list[tuple[datetime, datetime]]] = {}
        for child, since, until in bed.rows(_HELD):
            self._held.setdefault(child, []).append((since, until))
        self._lives: list[tuple[UUID, datetime, datetime | None]] = []
        for child, pid, since in bed.rows(_CHILDREN):
            ends = [b.at for b in blows if pid in b.children and b.at >= since - _REGISTERED_WITHIN]
            self._lives.append((child, since, min(ends, default=None)))

    def free(self, since: datetime, until: datetime) -> float:
        """For how long, in seconds, some living child had a slot free between these instants."""
        living = [
            (begun, ended, [p for p in self._held.get(child, ()) if p[0] < until and p[1] > since])
            for child, begun, ended in self._lives
            if begun < until and (ended is None or ended > since)
        ]
        free, at = timedelta(0), since
        while at < until:
            free += _STEP * any(
                begun <= at and (ended is None or at < ended) and self._has_room(held, at)
                for begun, ended, held in living
            )
            at += _STEP
        return min(free, until - since).total_seconds()

    def _has_room(self, held: Sequence[tuple[datetime, datetime]], at: datetime) -> bool:
        return sum(since <= at < until for since, until in held) < self._slots
