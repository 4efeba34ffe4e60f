"""Counts of what is there now, each bounded; and what is around one job."""

from collections.abc import Sequence

from tenure._model.ids import JobId
from tenure._model.job import JobRow
from tenure._model.lease import Overdue
from tenure._model.queue import EVERY_QUEUE
from tenure._model.standing import Around, Facts
from tenure._model.stats import COUNTED, Count, Depth
from tenure._store.port import Op, Row
from tenure._store.postgres.jobs import Jobs
from tenure._store.postgres.operators import Operators
from tenure._store.postgres.presence import Workers
from tenure._store.postgres.queues import Queues

_MOST = COUNTED + 1


class Depths(Jobs, Operators, Workers, Queues):
    """The part of the store that counts what is live, without counting it all."""

    def depths(self, *, most: int = COUNTED) -> Op[Sequence[Depth]]:
        """How much there is in each known queue, by name, up to so much; the empty ones too."""
        known = {row["name"] for row in (yield self._query("known_queues"))}
        rows = yield self._query("running", most=most + 1)
        running = {row["queue"]: row["running"] for row in rows}
        more = sum(running.values()) > most
        names = sorted(known | running.keys())
        rows = yield self._query("depths", queues=names, most=most + 1)
        return [
            Depth(
                queue=row["queue"],
                due=bounded(row["due"], most),
                later=bounded(row["later"], most),
                running=Count(running.get(row["queue"], 0), more),
                held=bounded(row["held"], most),
                failed=bounded(row["failed"], most),
                oldest_due_age=row["oldest_due_age"],
            )
            for row in rows
        ]

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
            ahead=bounded(row["ahead"]),
            running=row["running"],
            running_in_all=row["running_in_all"],
            locked=Overdue(job.id, row["pid"], row["application"], row["since"]),
            renewed_at=row["renewed_at"],
            renewals=row["renewals"],
        )
        return Facts(job, around, queues.get(job.queue), queues.get(EVERY_QUEUE), workers, held_by)


def bounded(found: int, most: int = COUNTED) -> Count:
    """The count of what was counted to one beyond the bound."""
    return Count(min(found, most), more=found > most)
