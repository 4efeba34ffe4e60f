"""Rollups, queue depths and dead-letter groups."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from tenure._model.explanation import JobContext, QueueContext
from tenure._model.ids import JobId
from tenure._model.job import JobRow
from tenure._model.lease import StuckLease
from tenure._model.queue import EVERY_QUEUE, QueueUsage
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

# The longest time between an attempt's `ended_at` and its transaction's first write: our
# statements take at most 10 seconds.
_LAG = timedelta(seconds=10)
_MOST = COUNTED + 1
# How many jobs in each group are examined for when they ended.
_NEWEST = 250


@dataclass(eq=False)
class StatsQueries(QueryBase):
    jobs: JobQueries
    queues: QueueQueries
    workers: WorkerQueries
    audit: AuditQueries

    def roll_up(self) -> Op[int]:
        """Count the next closed minute, and recount one that is now final.

        Return how many minutes were counted.
        """
        return atomically(self._roll_up())

    def _roll_up(self) -> Op[int]:
        # A minute that takes longer than the statement timeout would never be folded.
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
        now, take_mark = rules.moved(
            was, closed_to=closed_to, folded=folded, whole=whole, again=again
        )
        if now != was:
            yield self._query(
                "advance_rollup_progress",
                final_to=now.final_to,
                marked_to=now.marked_to,
                counted_until=now.counted_until,
                take_mark=take_mark,
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
        [at] = yield self._query("rollup_progress")
        period = stats.span(at["now"], since, until, step)
        rows = yield self._query(
            "stats",
            since=period.since,
            until=period.until,
            step=step,
            queue=queue or "",
            task=task or "",
        )
        return stats.stats(period, rows, at["counted_until"])

    def totals(self, since: datetime | None = None) -> Op[Totals]:
        """Count attempts that ended since a time, by queue and task, from the per-minute counts."""
        [at] = yield self._query("rollup_progress")
        period = rules.totals_span(
            at["now"], since, counted_until=at["counted_until"], final_to=at["final_to"]
        )
        rows = yield self._query(
            "totals", since=period.since, settled_to=period.settled_to, until=period.until
        )
        return rules.totals(period, rows)

    def depths(self, *, most: int = COUNTED) -> Op[Sequence[Depth]]:
        """Return each known queue's depth, counted up to `most`, including empty queues."""
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

    def usage(self, queues: Sequence[str], *, most: int) -> Op[QueueUsage]:
        """Estimate the total in these queues, given as names or prefixes such as `mail.*`."""
        prefixes = [name for name in queues if name.endswith("*")]
        rows = yield self._query(
            "usage",
            names=[name for name in queues if name not in prefixes],
            prefixes=[name.removesuffix("*") for name in prefixes],
            most=most,
        )
        jobs = rows[0]["queued"] + rows[0]["held"] + rows[0]["running"]
        return QueueUsage(jobs, int(jobs * (rows[0]["bytes"] or 0)))

    def facts(self, job_id: JobId) -> Op[JobContext | None]:
        """Return the facts that explain a job's state, or None if the job doesn't exist."""
        while (job := (yield from self.jobs.get(job_id))) is not None:
            if not job.state.is_live:
                return JobContext(job)
            # If the job has no row, it has ended since it was read.
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
        """Return dead letters by task and error signature.

        For one queue, only the first 10,000 are read.
        """
        after_task, after_signature = after or (task or "", "")
        params = {
            "task": task,
            "after_task": after_task,
            "after_signature": after_signature,
            "count": count,
            "most": _MOST,
        }
        if queue is None:
            rows = yield self._query("failed_groups", **params)
        else:
            rows = yield self._query("failed_groups_of", queue=queue, **params)
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


def bounded(value: int, most: int = COUNTED) -> Count:
    """Return a count, given rows that were counted up to one past the bound."""
    return Count(min(value, most), more=value > most)


def _hourly(rows: Rows, groups: int) -> Sequence[Sequence[int]]:
    """Return counts by group and hour, oldest first."""
    ended = Counter({(row["nth"], row["ago"]): row["ended"] for row in rows})
    return [[ended[nth, ago] for ago in reversed(range(HOURS))] for nth in range(1, groups + 1)]


def _group(row: Row, hours: Sequence[int]) -> FailedGroup:
    """Build a group.

    If not all of the queue's dead letters were read, mark that there may be more.
    """
    fields = {name: value for name, value in row.items() if name != "searched"}
    count = bounded(row["count"], COUNTED)
    if "searched" in row:
        count = Count(row["count"], more=row["searched"] > COUNTED)
    return FailedGroup(**fields | {"count": count, "hours": hours})
