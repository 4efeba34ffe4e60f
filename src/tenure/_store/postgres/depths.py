"""Counts of what is there now, each bounded; and what is around one job."""

from collections.abc import Sequence

from tenure._model.ids import JobId
from tenure._model.job import JobRow
from tenure._model.lease import Overdue
from tenure._model.queue import EVERY_QUEUE
from tenure._model.standing import Around, Facts
from tenure._model.stats import COUNTED, Count, Depth, FailedGroup
from tenure._store.port import Op, Row
from tenure._store.postgres.jobs import Jobs
from tenure._store.postgres.operators import Operators
from tenure._store.postgres.presence import Workers
from tenure._store.postgres.queues import Queues

_MOST = COUNTED + 1


class Depths(Jobs, Operators, Workers, Queues):
    """The part of the store that counts what is live, without counting it all."""

    def depths(self) -> Op[Sequence[Depth]]:
        """How much there is in each known queue, by name; the empty ones too."""
        known = {row["name"] for row in (yield self._query("known_queues"))}
        running = {
            row["queue"]: row["running"] for row in (yield self._query("running", most=_MOST))
        }
        more = sum(running.values()) > COUNTED
        rows = yield self._query("depths", queues=sorted(known | running.keys()), most=_MOST)
        return [
            Depth(
                queue=row["queue"],
                due=_count(row["due"]),
                later=_count(row["later"]),
                running=Count(running.get(row["queue"], 0), more),
                held=_count(row["held"]),
                failed=_count(row["failed"]),
                oldest_due_age=row["oldest_due_age"],
            )
            for row in rows
        ]

    def failed_groups(
        self, *, task: str | None = None, count: int, after: tuple[str, str | None] | None = None
    ) -> Op[Sequence[FailedGroup]]:
        """Dead letters by task and error signature, in this order, above one of them."""
        after_task, after_signature = after or (task or "", "")
        rows = yield self._query(
            "failed_groups",
            after_task=after_task,
            after_signature=after_signature,
            task=task,
            count=count,
            most=_MOST,
        )
        return [FailedGroup(**{**row, "count": _count(row["count"])}) for row in rows]

    def facts(self, job_id: JobId) -> Op[Facts | None]:
        """What decides where a job stands now; None if there is no such job."""
        while (job := (yield from self.get(job_id))) is not None:
            if not job.state.is_live:
                return Facts(job)
            # Without a row it has ended since it was read.
            if rows := (yield self._query("standing", id=job_id, most=_MOST)):
                return (yield from self._facts(job, rows[0]))
        return None

    def _facts(self, job: JobRow, row: Row) -> Op[Facts]:
        queues = {queue.name: queue for queue in (yield from self.queues())}
        workers = yield from self.workers()
        held_by = None
        if job.held:
            audit = yield from self.audit(f"job:{job.id}")
            held_by = next((each for each in audit if each.action == "hold"), None)
        around = Around(
            now=row["now"],
            ahead=_count(row["ahead"]),
            running=row["running"],
            running_in_all=row["running_in_all"],
            locked=Overdue(job.id, row["pid"], row["application"], row["since"]),
        )
        return Facts(job, around, queues.get(job.queue), queues.get(EVERY_QUEUE), workers, held_by)


def _count(found: int) -> Count:
    return Count(min(found, COUNTED), more=found > COUNTED)
