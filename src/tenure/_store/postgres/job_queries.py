"""Lists of jobs, and the search by selector."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from time import monotonic
from typing import Any
from uuid import UUID

from tenure._model.ids import JobId
from tenure._model.job import JobRow, State
from tenure._model.results import JobPage, JobSource, PageCursor, SearchPage
from tenure._model.selector import Selector
from tenure._rules import selector_query
from tenure._store.postgres.rows import LAST_ID, job_row
from tenure._store.postgres.statements import Jsonb, QueryBase
from tenure._store.steps import Op, Query, Rows
from tenure.errors import InvalidValue

_SEARCHED = 100_000
# Archived ones are counted before they are searched.
_SEARCHED_ARCHIVED = 20_000
# So many leases are read for a page of running jobs.
_LEASES = 10_000
_PILES = {
    State.QUEUED: JobSource.QUEUED,
    State.RUNNING: JobSource.RUNNING,
    State.FAILED: JobSource.FAILED,
    State.COMPLETED: JobSource.ARCHIVE,
    State.CANCELLED: JobSource.ARCHIVE,
}
# A live job's last error is looked up in each day's partition, so that fewer are searched.
_DEARER = 10


@dataclass(frozen=True, slots=True)
class _Searched:
    """One pile, as far as it was searched: down to the id `reached`, or to its end (0)."""

    jobs: Sequence[JobRow]
    rows: int
    reached: int
    bounded: bool = False


class JobSearchQueries(QueryBase):
    """The part of the store that lists jobs, and searches them by a selector."""

    def selector_params(self, selector: Selector, now: datetime) -> Op[dict[str, Any]]:
        """The parameters that say what matches, for every source alike."""
        shapes = selector_query.shapes(selector.args)
        created, due = (
            selector_query.between(selector.created, now),
            selector_query.between(selector.due, now),
        )
        ended, attempt = (
            selector_query.between(selector.ended, now),
            selector_query.numbers(selector.attempt),
        )
        return {
            "queues": selector.queue or None,
            "tasks": selector.task or None,
            "tags": selector.tag or None,
            "workers": (yield from self._worker_ids(selector.worker)) if selector.worker else None,
            "keys": selector.key or None,
            "errors": selector.error or None,
            "args": None if shapes is None else [Jsonb(shape) for shape in shapes],
            "created_after": created[0],
            "created_before": created[1],
            "due_after": due[0],
            "due_before": due[1],
            "ended_after": ended[0],
            "ended_before": ended[1],
            "attempt_from": attempt[0],
            "attempt_to": attempt[1],
        }

    def _worker_ids(self, named: Sequence[str]) -> Op[list[UUID]]:
        """Workers by their names, or by their ids, also those that are known no more."""
        rows = yield self._query("workers")
        ids = [row["id"] for row in rows if row["name"] in named]
        for text in named:
            try:
                ids.append(UUID(text))
            except ValueError:
                continue
        return ids

    def trimmed(self, query: Query) -> Query:
        """Without what its statement does not ask: not every job has an end, or an error."""
        wanted = self.statements.by_name[query.name].params
        return replace(query, params={name: query.params[name] for name in wanted})

    def list(
        self,
        state: State,
        *,
        queue: str | None = None,
        task: str | None = None,
        signature: str | None = None,
        count: int = 50,
        place: PageCursor | None = None,
    ) -> Op[JobPage]:
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
        self, queue: str | None, task: str | None, count: int, place: PageCursor | None
    ) -> Op[JobPage]:
        """By their leases, however many jobs are queued; like those if there are many leases."""
        before = place.before if place else LAST_ID
        rows = yield self._query(
            "list_running", before=before, most=_LEASES + 1, count=count, queue=queue, task=task
        )
        if rows[0]["leases"] > _LEASES:
            return (yield from self._list_live(State.RUNNING, queue, task, count, place))
        return _page([row for row in rows if row["id"] is not None], count)

    def _list_live(
        self,
        state: State,
        queue: str | None,
        task: str | None,
        count: int,
        place: PageCursor | None,
    ) -> Op[JobPage]:
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
            return JobPage(jobs, PageCursor(jobs[-1].id))
        return JobPage(jobs, PageCursor(lowest) if lowest > 1 else None)

    def _list_archive(
        self,
        state: State,
        queue: str | None,
        task: str | None,
        count: int,
        place: PageCursor | None,
    ) -> Op[JobPage]:
        """Day by day, newest first, until the page is full, or as many were searched as a page may:
        it comes short then, and is not the last."""
        days = yield self._query("archive_days")
        found: list[JobRow] = []
        for row in days:
            day = row["day"]
            if place and place.day and day > place.day:
                continue
            before = place.before if place and place.day == day else LAST_ID
            ends = yield self._query(
                "archive_page_end", day=day, before=before, searched=_SEARCHED_ARCHIVED
            )
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
                return JobPage(found, PageCursor(found[-1].id, day))
            if ends:
                return JobPage(found, PageCursor(lowest, day))
        return JobPage(found, None)

    def search(
        self,
        selector: Selector,
        *,
        count: int,
        window: int,
        places: Mapping[JobSource, JobId] | None = None,
    ) -> Op[SearchPage]:
        """The jobs that match, newest first, among `window` rows: the newest of each pile that are
        below its place, shared out evenly; what a short pile leaves goes to the next. Piles are
        read in the order in which jobs pass through them, so that one that is moved meanwhile is
        seen."""
        begun = monotonic()
        [clock] = yield self._query("clock")
        now: datetime = clock["now"]
        found: dict[JobSource, _Searched] = {}
        if selector.id:
            found[JobSource.IDS] = yield from self._by_ids(
                selector, (places or {}).get(JobSource.IDS)
            )
        else:
            sought = yield from self.selector_params(selector, now)
            left, piles = window, _piles(selector, places)
            for searched, pile in enumerate(piles):
                most = _window(pile, selector, left // (len(piles) - searched))
                before = LAST_ID if places is None else places[pile]
                within = {"before": before, "window": most, "count": count}
                rows = yield self._of(pile, selector, {**sought, **within})
                found[pile] = _read(pile, rows, window=most, count=count)
                left -= found[pile].rows
        return _together(found, count, timedelta(seconds=monotonic() - begun), now)

    def _of(self, pile: JobSource, selector: Selector, sought: dict[str, Any]) -> Query:
        """The statement that searches one pile."""
        match pile:
            case JobSource.QUEUED:
                views = selector_query.views(selector, State.QUEUED)
                query = self._query("search_queued", **sought, views=views)
            case JobSource.RUNNING:
                expired = selector_query.views(selector, State.RUNNING) is not None
                query = self._query("search_running", **sought, expired=expired)
            case JobSource.FAILED:
                query = self._query("search_failed", **sought)
            case _:
                states = [
                    s for s in selector_query.states(selector) if _PILES[s] is JobSource.ARCHIVE
                ]
                query = self._query("search_archive", **sought, states=states)
        return self.trimmed(query)

    def _by_ids(self, selector: Selector, before: JobId | None) -> Op[_Searched]:
        ids = [one for one in selector.id if before is None or one < before]
        rows = yield self._query("get", ids=ids)
        return _Searched([job_row(row) for row in rows], len(rows), 0)


def _page(rows: Rows, count: int) -> JobPage:
    """A full page may not be the last."""
    jobs = [job_row(row) for row in rows]
    return JobPage(jobs, PageCursor(jobs[-1].id) if len(jobs) == count else None)


def _piles(selector: Selector, places: Mapping[JobSource, JobId] | None) -> Sequence[JobSource]:
    """Those that the selector can mean and that are not searched to their end yet."""
    wanted = {_PILES[state] for state in selector_query.states(selector)}
    return [pile for pile in JobSource if pile in wanted and (places is None or pile in places)]


def _window(pile: JobSource, selector: Selector, share: int) -> int:
    dearer = selector.error and pile in (JobSource.QUEUED, JobSource.RUNNING)
    return max(share // _DEARER if dearer else share, 1)


def _read(pile: JobSource, rows: Rows, *, window: int, count: int) -> _Searched:
    """A pile from its rows; there is one, of nothing but how far was searched, if none matches."""
    jobs = [job_row(row) for row in rows if row["id"] is not None]
    searched, lowest = rows[0]["searched"], rows[0]["lowest"]
    if len(jobs) == count:
        return _Searched(jobs, searched, min(job.id for job in jobs))
    bounded = searched == window
    # Running jobs are not read in the order of ids: what is behind the bound has no place.
    goes_on = bounded and pile is not JobSource.RUNNING
    return _Searched(jobs, searched, lowest if goes_on else 0, bounded)


def _together(
    found: Mapping[JobSource, _Searched], count: int, took: timedelta, now: datetime
) -> SearchPage:
    """One page of all piles; each goes on where it, or the page, came to an end."""
    # The later pile has seen the job later.
    jobs = {job.id: job for searched in found.values() for job in searched.jobs}
    page = sorted(jobs.values(), key=lambda job: job.id, reverse=True)[:count]
    lowest = page[-1].id if len(jobs) > count else 0
    return SearchPage(
        page,
        {
            pile: JobId(max(lowest, searched.reached))
            for pile, searched in found.items()
            if searched.reached or any(job.id < lowest for job in searched.jobs)
        },
        searched=sum(searched.rows for searched in found.values()),
        bounded=any(searched.bounded for searched in found.values()),
        took=took,
        now=now,
    )
