"""Searches: the jobs that a selector means, newest first, among so many of the newest."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from time import monotonic
from typing import Any

from tenure._model.answers import Found, Pile
from tenure._model.ids import JobId
from tenure._model.job import JobRow, State
from tenure._model.selector import Selector
from tenure._rules import selecting
from tenure._store.port import Op, Query, Rows
from tenure._store.postgres.base import LAST_ID, job_row
from tenure._store.postgres.sought import Sought

_PILES = {
    State.QUEUED: Pile.QUEUED,
    State.RUNNING: Pile.RUNNING,
    State.FAILED: Pile.FAILED,
    State.COMPLETED: Pile.ARCHIVE,
    State.CANCELLED: Pile.ARCHIVE,
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


class Searching(Sought):
    """The part of the store that searches jobs."""

    def search(
        self,
        selector: Selector,
        *,
        count: int,
        window: int,
        places: Mapping[Pile, JobId] | None = None,
    ) -> Op[Found]:
        """The jobs that match, newest first, among `window` rows: the newest of each pile that are
        below its place, shared out evenly; what a short pile leaves goes to the next. Piles are
        read in the order in which jobs pass through them, so that one that is moved meanwhile is
        seen."""
        begun = monotonic()
        [clock] = yield self._query("clock")
        now: datetime = clock["now"]
        found: dict[Pile, _Searched] = {}
        if selector.id:
            found[Pile.IDS] = yield from self._by_ids(selector, (places or {}).get(Pile.IDS))
        else:
            sought = yield from self._sought(selector, now)
            left, piles = window, _piles(selector, places)
            for searched, pile in enumerate(piles):
                most = _window(pile, selector, left // (len(piles) - searched))
                before = LAST_ID if places is None else places[pile]
                within = {"before": before, "window": most, "count": count}
                rows = yield self._of(pile, selector, {**sought, **within})
                found[pile] = _read(pile, rows, window=most, count=count)
                left -= found[pile].rows
        return _together(found, count, timedelta(seconds=monotonic() - begun), now)

    def _of(self, pile: Pile, selector: Selector, sought: dict[str, Any]) -> Query:
        """The statement that searches one pile."""
        match pile:
            case Pile.QUEUED:
                views = selecting.views(selector, State.QUEUED)
                query = self._query("search_queued", **sought, views=views)
            case Pile.RUNNING:
                expired = selecting.views(selector, State.RUNNING) is not None
                query = self._query("search_running", **sought, expired=expired)
            case Pile.FAILED:
                query = self._query("search_failed", **sought)
            case _:
                states = [s for s in selecting.states(selector) if _PILES[s] is Pile.ARCHIVE]
                query = self._query("search_archive", **sought, states=states)
        return self._trimmed(query)

    def _by_ids(self, selector: Selector, before: JobId | None) -> Op[_Searched]:
        ids = [one for one in selector.id if before is None or one < before]
        rows = yield self._query("get", ids=ids)
        return _Searched([job_row(row) for row in rows], len(rows), 0)


def _piles(selector: Selector, places: Mapping[Pile, JobId] | None) -> Sequence[Pile]:
    """Those that the selector can mean and that are not searched to their end yet."""
    wanted = {_PILES[state] for state in selecting.states(selector)}
    return [pile for pile in Pile if pile in wanted and (places is None or pile in places)]


def _window(pile: Pile, selector: Selector, share: int) -> int:
    dearer = selector.error and pile in (Pile.QUEUED, Pile.RUNNING)
    return max(share // _DEARER if dearer else share, 1)


def _read(pile: Pile, rows: Rows, *, window: int, count: int) -> _Searched:
    """A pile from its rows; there is one, of nothing but how far was searched, if none matches."""
    jobs = [job_row(row) for row in rows if row["id"] is not None]
    searched, lowest = rows[0]["searched"], rows[0]["lowest"]
    if len(jobs) == count:
        return _Searched(jobs, searched, min(job.id for job in jobs))
    bounded = searched == window
    # Running jobs are not read in the order of ids: what is behind the bound has no place.
    goes_on = bounded and pile is not Pile.RUNNING
    return _Searched(jobs, searched, lowest if goes_on else 0, bounded)


def _together(found: Mapping[Pile, _Searched], count: int, took: timedelta, now: datetime) -> Found:
    """One page of all piles; each goes on where it, or the page, came to an end."""
    # The later pile has seen the job later.
    jobs = {job.id: job for searched in found.values() for job in searched.jobs}
    page = sorted(jobs.values(), key=lambda job: job.id, reverse=True)[:count]
    lowest = page[-1].id if len(jobs) > count else 0
    return Found(
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
