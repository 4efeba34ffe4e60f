"""Counters of the overview, and late work."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

from tenure._model.ids import JobId, WorkerId
from tenure._model.overview import (
    Completion,
    DayCounts,
    HorizonHolder,
    HorizonHolderKind,
    HourlyFailures,
    LateSchedule,
)
from tenure._model.schedule import TickOutcome, TickReason
from tenure._model.stats import COUNTED, Count, LateWork, Storage, TableSize, TickCount
from tenure._store.postgres.statements import QueryBase
from tenure._store.postgres.stats import bounded
from tenure._store.steps import Op

_MOST = COUNTED + 1
# Of each queue, of what is due and of what is for later.
_LOOKED_AT = 200
# Of what ended last, where most of it failed.
_ENDED = 1000
_LATELY = timedelta(hours=1)
_SCHEDULES = 1000
# One for each minute of the hour; a schedule that ticks more often is counted by its last ones.
_TICKS = 60
_NOT = timedelta(0)


class OverviewQueries(QueryBase):
    """The part of the store that is asked how all of it is."""

    def pulse(self) -> Op[DayCounts]:
        """The counts of a day and of the moment."""
        [row] = yield self._query("overview_counts", most=_MOST)
        return DayCounts(
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
        [row] = yield self._query("count_retrying", queues=list(queues), most=_LOOKED_AT)
        return Count(row["retrying"], row["more"])

    def hours(
        self, queues: Sequence[str]
    ) -> Op[Mapping[str, tuple[HourlyFailures, HourlyFailures]]]:
        """What ended of each queue in the last hour, and in the one before it."""
        rows = yield self._query("hourly_failures", queues=list(queues))
        found = {
            (row["queue"], row["lately"]): HourlyFailures(row["ended"], row["failed"])
            for row in rows
        }
        return {
            name: (
                found.get((name, True), HourlyFailures()),
                found.get((name, False), HourlyFailures()),
            )
            for name in queues
        }

    def completions(self, *, count: int) -> Op[Sequence[Completion]]:
        """What was completed last, newest first."""
        rows = yield self._query("recent_completions", count=count, most=_ENDED)
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

    def holders(self, *, count: int) -> Op[Sequence[HorizonHolder]]:
        """Who keeps dead rows from being removed, the oldest first."""
        rows = yield self._query("horizon_holders", count=count)
        return [HorizonHolder(**{**row, "kind": HorizonHolderKind(row["kind"])}) for row in rows]

    def late_schedules(self, older_than: timedelta, *, count: int) -> Op[Sequence[LateSchedule]]:
        """Schedules that have been due for longer than this, the longest first."""
        rows = yield self._query("late_schedules", older_than=older_than, count=count)
        return [LateSchedule(**row) for row in rows]

    def lateness(self) -> Op[LateWork]:
        """What should have been done and was not, and what became of the last hour's ticks."""
        [row] = yield self._query("lateness", most=COUNTED + 1)
        ticks = yield self._query(
            "recent_ticks", within=_LATELY, schedules=_SCHEDULES, ticks=_TICKS
        )
        return LateWork(
            lease=row["lease"] or _NOT,
            schedule=row["schedule"] or _NOT,
            schedules=bounded(row["schedules"]),
            # An operation's next chunk is in the future as long as somebody does it.
            operation=max(row["operation"] or _NOT, _NOT),
            operations=bounded(row["operations"]),
            items_left=int(row["items_left"]),
            ticks=[
                TickCount(
                    TickOutcome(tick["outcome"]),
                    None if tick["reason"] is None else TickReason(tick["reason"]),
                    tick["count"],
                )
                for tick in ticks
            ],
        )

    def storage(self) -> Op[Storage]:
        """How large our tables are, their dead rows, and what keeps those from being removed."""
        tables = yield self._query("tables")
        [row] = yield self._query("horizon_age")
        sizes = [TableSize(**table) for table in tables]
        return Storage(sizes, row["horizon"], row["oldest"])
