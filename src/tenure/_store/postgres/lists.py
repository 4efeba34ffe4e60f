"""Lists: the jobs of one state, newest first, a page at a time."""

from typing import TYPE_CHECKING

from tenure._model.answers import Page, Place
from tenure._model.ids import JobId
from tenure._model.job import State
from tenure._store.port import Op, Rows
from tenure._store.postgres.base import LAST_ID, Base, job_row
from tenure.errors import InvalidValue

if TYPE_CHECKING:
    from tenure._model.job import JobRow

_SEARCHED = 100_000
# Archived ones are counted before they are searched.
_SEARCHED_ARCHIVED = 20_000
# So many leases are read for a page of running jobs.
_LEASES = 10_000


class Lists(Base):
    """The part of the store that lists jobs."""

    def list(
        self,
        state: State,
        *,
        queue: str | None = None,
        task: str | None = None,
        signature: str | None = None,
        count: int = 50,
        place: Place | None = None,
    ) -> Op[Page]:
        """Jobs in one state, newest first. What is searched per page is bounded (of what is queued
        a stretch of ids, of what runs the leases): one may come short and not be the last."""
        if signature is not None and state is not State.FAILED:
            raise InvalidValue(
                f"what is {state} has no signature of an error; only dead letters have one"
            )
        if state is State.RUNNING:
            return (yield from self._list_running(queue, task, count, place))
        if state is State.QUEUED:
            return (yield from self._list_live(state, queue, task, count, place))
        if state is not State.FAILED:
            return (yield from self._list_archive(state, queue, task, count, place))
        rows = yield self._query(
            "list_failed",
            before=place.before if place else LAST_ID,
            count=count,
            queue=queue,
            task=task,
            signature=signature,
        )
        return _page(rows, count)

    def _list_running(
        self, queue: str | None, task: str | None, count: int, place: Place | None
    ) -> Op[Page]:
        """By their leases, however many jobs are queued; like those if there are many leases."""
        before = place.before if place else LAST_ID
        rows = yield self._query(
            "list_running", before=before, most=_LEASES + 1, count=count, queue=queue, task=task
        )
        if rows[0]["leases"] > _LEASES:
            return (yield from self._list_live(State.RUNNING, queue, task, count, place))
        return _page([row for row in rows if row["id"] is not None], count)

    def _list_live(
        self, state: State, queue: str | None, task: str | None, count: int, place: Place | None
    ) -> Op[Page]:
        """A page may come short, or empty, and still not be the last: its stretch was searched."""
        before = place.before if place else JobId((yield self._query("newest_id"))[0]["id"] + 1)
        lowest = JobId(max(before - _SEARCHED, 0))
        rows = yield self._query(
            "list_live",
            before=before,
            lowest=lowest,
            count=count,
            state=state,
            queue=queue,
            task=task,
        )
        jobs = [job_row(row) for row in rows]
        if len(jobs) == count:
            return Page(jobs, Place(jobs[-1].id))
        return Page(jobs, Place(lowest) if lowest > 1 else None)

    def _list_archive(
        self, state: State, queue: str | None, task: str | None, count: int, place: Place | None
    ) -> Op[Page]:
        """Day by day, newest first, until the page is full, or as many were searched as a page may:
        it comes short then, and is not the last."""
        days = yield self._query("days")
        found: list[JobRow] = []
        for row in days:
            day = row["day"]
            if place and place.day and day > place.day:
                continue
            before = place.before if place and place.day == day else LAST_ID
            ends = yield self._query("stretch", day=day, before=before, searched=_SEARCHED_ARCHIVED)
            lowest = JobId(ends[0]["id"] if ends else 0)
            rows = yield self._query(
                "list_archive",
                day=day,
                before=before,
                lowest=lowest,
                count=count - len(found),
                state=state,
                queue=queue,
                task=task,
            )
            found += [job_row(r) for r in rows]
            if len(found) == count:
                return Page(found, Place(found[-1].id, day))
            if ends:
                return Page(found, Place(lowest, day))
        return Page(found, None)


def _page(rows: Rows, count: int) -> Page:
    """A full page may not be the last."""
    jobs = [job_row(row) for row in rows]
    return Page(jobs, Place(jobs[-1].id) if len(jobs) == count else None)
