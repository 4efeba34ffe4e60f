"""Figures for a glance at the whole installation. Each is bounded."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

from tenure._model.ids import JobId, WorkerId
from tenure._model.overview import Completion, Holder, HolderKind, Hour, LateSchedule, Pulse
from tenure._model.stats import COUNTED, Count
from tenure._store.port import Op
from tenure._store.postgres.base import Base
from tenure._store.postgres.depths import bounded

_MOST = COUNTED + 1
# Of each queue, of what is due and of what is for later.
_LOOKED_AT = 200
# Of what ended last, where most of it failed.
_ENDED = 1000


class Glances(Base):
    """The part of the store that is asked how all of it is."""

    def pulse(self) -> Op[Pulse]:
        """The counts of a day and of the moment."""
        [row] = yield self._query("pulse", most=_MOST)
        return Pulse(
            now=row["now"],
            expired=bounded(row["expired"]),
            completed_today=Count(
                row["folded"] + min(row["completed"], COUNTED), more=row["ended"] > COUNTED
            ),
            failed_day=bounded(row["failed_day"]),
            failed_hour=bounded(row["failed_hour"]),
        )

    def retrying(self, queues: Sequence[str]) -> Op[Count]:
        """How many jobs of these queues wait for another attempt, of some of each."""
        [row] = yield self._query("retrying", queues=list(queues), most=_LOOKED_AT)
        return Count(row["retrying"], row["more"])

    def hours(self, queues: Sequence[str]) -> Op[Mapping[str, tuple[Hour, Hour]]]:
        """What ended of each queue in the last hour, and in the one before it."""
        rows = yield self._query("hours", queues=list(queues))
        found = {(row["queue"], row["lately"]): Hour(row["ended"], row["failed"]) for row in rows}
        return {
            name: (found.get((name, True), Hour()), found.get((name, False), Hour()))
            for name in queues
        }

    def completions(self, *, count: int) -> Op[Sequence[Completion]]:
        """What was completed last, newest first."""
        rows = yield self._query("completions", count=count, most=_ENDED)
        return [
            Completion(
                **{
                    **row,
                    "job_id": JobId(row["job_id"]),
                    "claimed_by": WorkerId(row["claimed_by"]),
                }
            )
            for row in rows
        ]

    def holders(self, *, count: int) -> Op[Sequence[Holder]]:
        """Who keeps dead rows from being removed, the oldest first."""
        rows = yield self._query("holders", count=count)
        return [Holder(**{**row, "kind": HolderKind(row["kind"])}) for row in rows]

    def late_schedules(self, older_than: timedelta, *, count: int) -> Op[Sequence[LateSchedule]]:
        """Schedules that have been due for longer than this, the longest first."""
        rows = yield self._query("late_schedules", older_than=older_than, count=count)
        return [LateSchedule(**row) for row in rows]
