"""Job lists, and search by selector."""

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
from tenure._rules import access, selector_query
from tenure._store.postgres.rows import LAST_ID, job_row
from tenure._store.postgres.statements import Jsonb, QueryBase
from tenure._store.steps import Op, Query, Rows
from tenure.errors import InvalidValue

_SEARCHED = 100_000
# Archived jobs are counted before they are searched.
_SEARCHED_ARCHIVED = 20_000
# How many leases to read for a page of running jobs.
_LEASES = 10_000
_SOURCES = {
    State.QUEUED: JobSource.QUEUED,
    State.RUNNING: JobSource.RUNNING,
    State.FAILED: JobSource.FAILED,
    State.COMPLETED: JobSource.ARCHIVE,
    State.CANCELLED: JobSource.ARCHIVE,
}
# A live job's last error has to be looked up in every day's partition, so we search fewer jobs.
_LOOKUP_COST = 10


@dataclass(frozen=True, slots=True)
class _Searched:
    """One source that has been searched down to the id `reached`, or to its end (0)."""

    jobs: Sequence[JobRow]
    rows: int
    reached: int
    bounded: bool = False


class JobSearchQueries(QueryBase):
    def selector_params(self, selector: Selector, now: datetime) -> Op[dict[str, Any]]:
        """Return the parameters that all sources share."""
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
        """Return workers' ids by name or id, even for workers that no longer exist."""
        rows = yield self._query("workers")
        ids = [row["id"] for row in rows if row["name"] in named]
        for text in named:
            try:
                ids.append(UUID(text))
            except ValueError:
                continue
        return ids

    def trimmed(self, query: Query) -> Query:
        """Drop parameters that the statement doesn't take. Not every job has an end or an error."""
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
        granted: Sequence[str] | None = None,
        largest: int | None = None,
    ) -> Op[JobPage]:
        """Return jobs in one state, newest first. A short page isn't necessarily the last one.

        `granted` lists LIKE patterns for the queues to include (None: all). Payload fields of more
        than `largest` bytes of JSON are omitted. If `largest` is 0, all are omitted.
        """
        of = {"queue": queue, "task": task, "granted": granted, "largest": largest}
        if signature is not None and state is not State.FAILED:
            raise InvalidValue(f"a {state} job has no error signature; only dead letters have one")
        if state is State.RUNNING:
            return (yield from self._list_running(of, count, place))
        if state is State.QUEUED:
            return (yield from self._list_live(state, of, count, place))
        if state is not State.FAILED:
            return (yield from self._list_archive(state, of, count, place))
        rows = yield self._query(
            "list_failed",
            before=place.before if place else LAST_ID,
            count=count,
            signature=signature,
            **of,
        )
        return _page(rows, count)

    def _list_running(
        self, of: Mapping[str, Any], count: int, place: PageCursor | None
    ) -> Op[JobPage]:
        """List running jobs by lease, so that the number of queued jobs doesn't affect the cost.

        If there are many leases, list them by id instead.
        """
        before = place.before if place else LAST_ID
        rows = yield self._query("list_running", before=before, most=_LEASES + 1, count=count, **of)
        if rows[0]["leases"] > _LEASES:
            return (yield from self._list_live(State.RUNNING, of, count, place))
        return _page([row for row in rows if row["id"] is not None], count)

    def _list_live(
        self, state: State, of: Mapping[str, Any], count: int, place: PageCursor | None
    ) -> Op[JobPage]:
        """Search a range of ids. A page can be short or even empty without being the last one."""
        before = place.before if place else JobId((yield self._query("newest_id"))[0]["id"] + 1)
        lowest = JobId(max(before - _SEARCHED, 0))
        rows = yield self._query(
            "list_live", before=before, lowest=lowest, count=count, state=state, **of
        )
        jobs = [job_row(row) for row in rows]
        if len(jobs) == count:
            return JobPage(jobs, PageCursor(jobs[-1].id))
        return JobPage(jobs, PageCursor(lowest) if lowest > 1 else None)

    def _list_archive(
        self, state: State, of: Mapping[str, Any], count: int, place: PageCursor | None
    ) -> Op[JobPage]:
        """Search the archive by day, newest first.

        Stop when the page is full or the row limit is reached.
        """
        days = yield self._query("archive_days")
        jobs: list[JobRow] = []
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
                count=count - len(jobs),
                state=state,
                **of,
            )
            jobs += [job_row(r) for r in rows]
            if len(jobs) == count:
                return JobPage(jobs, PageCursor(jobs[-1].id, day))
            if ends:
                return JobPage(jobs, PageCursor(lowest, day))
        return JobPage(jobs, None)

    def search(
        self,
        selector: Selector,
        *,
        count: int,
        window: int,
        places: Mapping[JobSource, JobId] | None = None,
        granted: Sequence[str] | None = None,
        largest: int | None = None,
    ) -> Op[SearchPage]:
        """Return matching jobs, newest first. At most `window` rows are read across all sources.

        `granted` lists patterns for the queues to search, such as `mail.*` (None: all). Payload
        fields of more than `largest` bytes of JSON are omitted. If `largest` is 0, all are omitted.

        Sources are read in the order jobs pass through them, so a job that moves during
        the search isn't missed.
        """
        begun = monotonic()
        [clock] = yield self._query("clock")
        now: datetime = clock["now"]
        results: dict[JobSource, _Searched] = {}
        if selector.id:
            results[JobSource.IDS] = yield from self._by_ids(
                selector, (places or {}).get(JobSource.IDS), granted, largest
            )
        else:
            params = yield from self.selector_params(selector, now)
            like = access.like_patterns(granted)
            left, sources = window, _sources(selector, places)
            for searched, source in enumerate(sources):
                most = _window(source, selector, left // (len(sources) - searched))
                before = LAST_ID if places is None else places[source]
                within = {"before": before, "window": most, "count": count}
                of = {"granted": like, "largest": largest}
                rows = yield self._of(source, selector, {**params, **within, **of})
                results[source] = _read(source, rows, window=most, count=count)
                left -= results[source].rows
        return _merge(results, count, timedelta(seconds=monotonic() - begun), now)

    def _of(self, source: JobSource, selector: Selector, params: dict[str, Any]) -> Query:
        match source:
            case JobSource.QUEUED:
                views = selector_query.views(selector, State.QUEUED)
                query = self._query("search_queued", **params, views=views)
            case JobSource.RUNNING:
                expired = selector_query.views(selector, State.RUNNING) is not None
                query = self._query("search_running", **params, expired=expired)
            case JobSource.FAILED:
                query = self._query("search_failed", **params)
            case _:
                states = [
                    s for s in selector_query.states(selector) if _SOURCES[s] is JobSource.ARCHIVE
                ]
                query = self._query("search_archive", **params, states=states)
        return self.trimmed(query)

    def _by_ids(
        self,
        selector: Selector,
        before: JobId | None,
        granted: Sequence[str] | None,
        largest: int | None,
    ) -> Op[_Searched]:
        ids = [one for one in selector.id if before is None or one < before]
        rows = yield self._query("get", ids=ids, largest=largest)
        if granted is not None:
            rows = [row for row in rows if access.matches(granted, row["queue"])]
        return _Searched([job_row(row) for row in rows], len(rows), 0)


def _page(rows: Rows, count: int) -> JobPage:
    jobs = [job_row(row) for row in rows]
    return JobPage(jobs, PageCursor(jobs[-1].id) if len(jobs) == count else None)


def _sources(selector: Selector, places: Mapping[JobSource, JobId] | None) -> Sequence[JobSource]:
    """Return the sources that can match and aren't exhausted."""
    wanted = {_SOURCES[state] for state in selector_query.states(selector)}
    return [s for s in JobSource if s in wanted and (places is None or s in places)]


def _window(source: JobSource, selector: Selector, share: int) -> int:
    costly = selector.error and source in (JobSource.QUEUED, JobSource.RUNNING)
    return max(share // _LOOKUP_COST if costly else share, 1)


def _read(source: JobSource, rows: Rows, *, window: int, count: int) -> _Searched:
    """Read a source's rows. If nothing matched, its only row says how far the search got."""
    jobs = [job_row(row) for row in rows if row["id"] is not None]
    searched, lowest = rows[0]["searched"], rows[0]["lowest"]
    if len(jobs) == count:
        return _Searched(jobs, searched, min(job.id for job in jobs))
    bounded = searched == window
    # Running jobs aren't read by id, so rows beyond the bound have no position.
    continues = bounded and source is not JobSource.RUNNING
    return _Searched(jobs, searched, lowest if continues else 0, bounded)


def _merge(
    results: Mapping[JobSource, _Searched], count: int, took: timedelta, now: datetime
) -> SearchPage:
    """Merge the sources into one page. Each resumes where it stopped or where the page ended."""
    # A later source has the newer row for the same job.
    jobs = {job.id: job for searched in results.values() for job in searched.jobs}
    page = sorted(jobs.values(), key=lambda job: job.id, reverse=True)[:count]
    lowest = page[-1].id if len(jobs) > count else 0
    return SearchPage(
        page,
        {
            source: JobId(max(lowest, searched.reached))
            for source, searched in results.items()
            if searched.reached or any(job.id < lowest for job in searched.jobs)
        },
        searched=sum(searched.rows for searched in results.values()),
        bounded=any(searched.bounded for searched in results.values()),
        took=took,
        now=now,
    )
