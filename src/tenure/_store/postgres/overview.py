"""Counters for the overview, and late work."""

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
# How many rows to examine in each queue, both among due jobs and among later ones.
_LOOKED_AT = 200
# Rows examined among the last attempts, if most of them failed.
_ENDED = 1000
_RECENT = timedelta(hours=1)
_SCHEDULES = 1000
# One tick per minute for an hour. If a schedule ticks more often, only its latest ticks are
# counted.
_TICKS = 60
_ZERO = timedelta(0)


class OverviewQueries(QueryBase):
    def pulse(self) -> Op[DayCounts]:
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
        """Return how many jobs are waiting for another attempt, by sampling each queue."""
        [row] = yield self._query("count_retrying", queues=list(queues), most=_LOOKED_AT)
        return Count(row["retrying"], row["more"])

    def hours(
        self, queues: Sequence[str]
    ) -> Op[Mapping[str, tuple[HourlyFailures, HourlyFailures]]]:
        """Return each queue's attempts in the last hour and the hour before."""
        rows = yield self._query("hourly_failures", queues=list(queues))
        hours = {
            (row["queue"], row["recent"]): HourlyFailures(row["ended"], row["failed"])
            for row in rows
        }
        return {
            name: (
                hours.get((name, True), HourlyFailures()),
                hours.get((name, False), HourlyFailures()),
            )
            for name in queues
        }

    def completions(self, *, count: int) -> Op[Sequence[Completion]]:
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
        """Return what keeps dead rows from being removed, oldest first."""
        rows = yield self._query("horizon_holders", count=count)
        return [HorizonHolder(**{**row, "kind": HorizonHolderKind(row["kind"])}) for row in rows]

    def late_schedules(self, older_than: timedelta, *, count: int) -> Op[Sequence[LateSchedule]]:
        rows = yield self._query("late_schedules", older_than=older_than, count=count)
        return [LateSchedule(**row) for row in rows]

    def lateness(self) -> Op[LateWork]:
        """Return overdue work, and the outcomes of the last hour's ticks."""
        [row] = yield self._query("lateness", most=COUNTED + 1)
        ticks = yield self._query(
            "recent_ticks", within=_RECENT, schedules=_SCHEDULES, ticks=_TICKS
        )
        return LateWork(
            lease=row["lease"] or _ZERO,
            schedule=row["schedule"] or _ZERO,
            schedules=bounded(row["schedules"]),
            # An operation's next chunk is in the future while a worker is processing it.
            operation=max(row["operation"] or _ZERO, _ZERO),
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
        """Return our tables' sizes and dead rows, and what holds back vacuum."""
        tables = yield self._query("tables")
        [row] = yield self._query("horizon_age")
        sizes = [TableSize(**table) for table in tables]
        return Storage(sizes, row["horizon"], row["oldest"])
