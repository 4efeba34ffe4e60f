"""Rollups, queue depths, groups of failures."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from tenure._model.explanation import JobContext, QueueContext
from tenure._model.ids import JobId
from tenure._model.job import JobRow
from tenure._model.lease import StuckLease
from tenure._model.queue import EVERY_QUEUE
from tenure._model.stats import COUNTED, HOURS, Count, Depth, FailedGroup, Stats, Totals
from tenure._rules import stats
from tenure._rules import stats as rules
from tenure._rules.stats import BOUNDS, RollupProgress
from tenure._store.postgres.audit import AuditQueries
from tenure._store.postgres.jobs import JobQueries
from tenure._store.postgres.queues import QueueQueries
from tenure._store.postgres.statements import QueryBase
from tenure._store.postgres.workers import WorkerQueries
from tenure._store.steps import Op, RawSql, Row, Rows, atomically

# The time between an attempt's `ended_at` and the first write of its transaction, at the most: a
# statement of ours takes 10 seconds.
_LAG = timedelta(seconds=10)
_MOST = COUNTED + 1
# So many of each group are looked at for when they ended.
_NEWEST = 250


@dataclass(eq=False)
class StatsQueries(QueryBase):
    """The part of the store that counts: what has ended, what is live, dead letters by group."""

    jobs: JobQueries
    queues: QueueQueries
    workers: WorkerQueries
    audit: AuditQueries

    def roll_up(self) -> Op[int]:
        """Fold the next closed minute, and one again that is whole by now; answers with how many
        minutes that were, 0 if there was none or another folder is at it."""
        return atomically(self._roll_up())

    def _roll_up(self) -> Op[int]:
        # A minute that takes longer than a statement may would never be folded.
        yield RawSql("SET LOCAL statement_timeout = 0")
        rows = yield self._query("lock_rollup_progress", lag=_LAG)
        if not rows:
            yield self._query("init_rollup_progress")
            return 0
        [row] = rows
        was = RollupProgress(row["final_to"], row["marked_to"], row["counted_until"])
        closed_to, whole = row["closed_to"], row["whole"]
        folded = yield from self._roll_up_first(was.counted_until, closed_to)
        again = (yield from self._roll_up_first(was.final_to, was.marked_to)) if whole else None
        now, mark_anew = rules.moved(
            was, closed_to=closed_to, folded=folded, whole=whole, again=again
        )
        if now != was:
            yield self._query(
                "advance_rollup_progress",
                final_to=now.final_to,
                marked_to=now.marked_to,
                counted_until=now.counted_until,
                mark_anew=mark_anew,
            )
        return (folded is not None) + (again is not None)

    def _roll_up_first(self, since: datetime, until: datetime) -> Op[datetime | None]:
        if not since < until:
            return None
        rows = yield self._query(
            "rollup_minute", since=since, until=until, bounds=[*map(str, BOUNDS)]
        )
        return rows[0]["minute"] if rows else None

    def over_time(
        self,
        *,
        queue: str | None = None,
        task: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        step: timedelta = rules.MINUTE,
    ) -> Op[Stats]:
        """What ended over a time, from the counts per minute."""
        [at] = yield self._query("rollup_progress")
        asked = stats.span(at["now"], since, until, step)
        rows = yield self._query(
            "stats",
            since=asked.since,
            until=asked.until,
            step=step,
            queue=queue or "",
            task=task or "",
        )
        return stats.stats(asked, rows, at["counted_until"])

    def totals(self, since: datetime | None = None) -> Op[Totals]:
        """What ended from an instant on, by queue and task, from the counts per minute."""
        [at] = yield self._query("rollup_progress")
        asked = rules.totals_span(
            at["now"], since, counted_until=at["counted_until"], final_to=at["final_to"]
        )
        rows = yield self._query(
            "totals", since=asked.since, settled_to=asked.settled_to, until=asked.until
        )
        return rules.totals(asked, rows)

    def depths(self, *, most: int = COUNTED) -> Op[Sequence[Depth]]:
        """How much there is in each known queue, by name, up to so much; the empty ones too."""
        known = {row["name"] for row in (yield self._query("known_queues"))}
        rows = yield self._query("count_running", most=most + 1)
        running = {row["queue"]: row["running"] for row in rows}
        more = sum(running.values()) > most
        names = sorted(known | running.keys())
        rows = yield self._query("queue_depths", queues=names, most=most + 1)
        return [
            Depth(
                queue=row["queue"],
                due=bounded(row["due"], most),
                scheduled=bounded(row["scheduled"], most),
                running=Count(running.get(row["queue"], 0), more),
                held=bounded(row["held"], most),
                failed=bounded(row["failed"], most),
                oldest_due_age=row["oldest_due_age"],
            )
            for row in rows
        ]

    def facts(self, job_id: JobId) -> Op[JobContext | None]:
        """What decides where a job stands now; None if there is no such job."""
        while (job := (yield from self.jobs.get(job_id))) is not None:
            if not job.state.is_live:
                return JobContext(job)
            # Without a row it has ended since it was read.
            if rows := (yield self._query("explain_job", id=job_id, most=_MOST)):
                return (yield from self._facts(job, rows[0]))
        return None

    def _facts(self, job: JobRow, row: Row) -> Op[JobContext]:
        queues = {queue.name: queue for queue in (yield from self.queues.list())}
        workers = yield from self.workers.list()
        held_by = None
        if job.held:
            audit = yield from self.audit.list(f"job:{job.id}")
            held_by = next((each for each in audit if each.action == "hold"), None)
        around = QueueContext(
            now=row["now"],
            ahead=bounded(row["ahead"]),
            running=row["running"],
            running_in_all=row["running_in_all"],
            locked=StuckLease(job.id, row["pid"], row["application"], row["since"]),
            renewed_at=row["renewed_at"],
            renewals=row["renewals"],
        )
        return JobContext(
            job, around, queues.get(job.queue), queues.get(EVERY_QUEUE), workers, held_by
        )

    def failed_groups(
        self,
        *,
        queue: str | None = None,
        task: str | None = None,
        count: int,
        after: tuple[str, str | None] | None = None,
    ) -> Op[Sequence[FailedGroup]]:
        """Dead letters by task and error signature, in this order, above one of them. Of one queue,
        among the 10,000 of its dead letters that are found first. When they ended is asked for
        apart: a dead letter that is retried in between is in the count, and not in the hours."""
        after_task, after_signature = after or (task or "", "")
        asked = {
            "task": task,
            "after_task": after_task,
            "after_signature": after_signature,
            "count": count,
            "most": _MOST,
        }
        if queue is None:
            rows = yield self._query("failed_groups", **asked)
        else:
            rows = yield self._query("failed_groups_of", queue=queue, **asked)
        if not rows:
            return []
        hours = yield self._query(
            "failed_hours",
            tasks=[row["task"] for row in rows],
            signatures=[row["signature"] for row in rows],
            queue=queue,
            most=_NEWEST,
        )
        return [
            _group(row, tally) for row, tally in zip(rows, _hourly(hours, len(rows)), strict=True)
        ]


def bounded(found: int, most: int = COUNTED) -> Count:
    """The count of what was counted to one beyond the bound."""
    return Count(min(found, most), more=found > most)


def _hourly(rows: Rows, groups: int) -> Sequence[Sequence[int]]:
    """By group, hour by hour, the oldest first."""
    ended = Counter({(row["nth"], row["ago"]): row["ended"] for row in rows})
    return [[ended[nth, ago] for ago in reversed(range(HOURS))] for nth in range(1, groups + 1)]


def _group(row: Row, hours: Sequence[int]) -> FailedGroup:
    """Of a queue, a group as far as it was found: where not all of the queue's were looked at there
    may be more of each."""
    found = {name: value for name, value in row.items() if name != "searched"}
    count = bounded(row["count"], COUNTED)
    if "searched" in row:
        count = Count(row["count"], more=row["searched"] > COUNTED)
    return FailedGroup(**found | {"count": count, "hours": hours})
