"""Lists: jobs of one state, newest first, a page at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tenure._model.job import State
from tenure._model.outcome import Failed, Succeeded
from tests.conformance.acts import BY, DAY, ERROR, a_job, claim, ended, enqueue

if TYPE_CHECKING:
    from collections.abc import Sequence

    from support.store import Database
    from tenure._model.ids import JobId
    from tenure._model.results import PageCursor

COUNT = 7


async def made(db: Database, state: State, count: int = COUNT, **fields: Any) -> Sequence[JobId]:
    """Jobs in one state, oldest first."""
    jobs = [a_job(**fields) for _ in range(count)]
    ids = [answer.id for answer in await db.run(db.store.jobs.enqueue(jobs))]
    if state is State.CANCELLED:
        await db.run(db.store.job_commands.cancel(ids, BY))
    if state in (State.RUNNING, State.COMPLETED, State.FAILED):
        claimed = await claim(db, count=count, queues=[fields.get("queue", "q")])
        outcome = Succeeded() if state is State.COMPLETED else Failed(ERROR, retryable=False)
        if state is not State.RUNNING:
            await db.run(db.store.settlement.settle([ended(one, outcome) for one in claimed]))
    return ids


async def pages(db: Database, state: State, *, count: int = 3, **filters: Any) -> list[list[JobId]]:
    """All pages to the end."""
    found: list[list[JobId]] = []
    place: PageCursor | None = None
    while True:
        page = await db.run(db.store.job_queries.list(state, count=count, place=place, **filters))
        assert all(job.state is state for job in page.jobs)
        found.append([job.id for job in page.jobs])
        place = page.next
        if place is None:
            return found


def flat(found: list[list[JobId]]) -> list[JobId]:
    return [job_id for page in found for job_id in page]


@pytest.mark.parametrize("state", list(State))
async def test_pages_hold_every_job_of_the_state_once_newest_first(
    db: Database, state: State
) -> None:
    """Shows R12."""
    ids = await made(db, state)
    other = State.CANCELLED if state is not State.CANCELLED else State.COMPLETED
    await made(db, other, 2)
    found = await pages(db, state)

    assert flat(found) == sorted(ids, reverse=True)
    assert [len(page) for page in found] == [3, 3, 1]


@pytest.mark.parametrize("state", list(State))
async def test_a_list_is_filtered_by_queue_and_task(db: Database, state: State) -> None:
    await made(db, state, 2, queue="a", task="x")
    wanted = await made(db, state, 2, queue="b", task="x")
    other = await made(db, state, 2, queue="b", task="y")

    assert set(flat(await pages(db, state, queue="b"))) == {*wanted, *other}
    assert set(flat(await pages(db, state, queue="b", task="x"))) == {*wanted}
    assert flat(await pages(db, state, queue="c")) == []


async def test_what_comes_during_the_paging_does_not_shift_the_pages(db: Database) -> None:
    ids = await made(db, State.QUEUED, 4)
    first = await db.run(db.store.job_queries.list(State.QUEUED, count=2))
    await enqueue(db)
    second = await db.run(db.store.job_queries.list(State.QUEUED, count=2, place=first.next))

    assert [job.id for job in [*first.jobs, *second.jobs]] == sorted(ids, reverse=True)


async def test_the_archive_is_listed_across_days_the_newest_day_first(db: Database) -> None:
    """A job may be enqueued before another and end on a later day."""
    long = await db.run(db.store.jobs.enqueue([a_job(queue="long") for _ in range(2)]))
    first_day = await made(db, State.COMPLETED, 3)
    db.clock.advance(2 * DAY)
    second_day = await made(db, State.COMPLETED, 2)
    claimed = await claim(db, count=2, queues=["long"])
    await db.run(db.store.settlement.settle([ended(one, Succeeded()) for one in claimed]))

    expected = [
        *sorted(second_day, reverse=True),
        *sorted((answer.id for answer in long), reverse=True),
        *sorted(first_day, reverse=True),
    ]
    for count in (1, 2, 3, 4, 50):
        assert flat(await pages(db, State.COMPLETED, count=count)) == expected


async def test_a_job_far_behind_the_newest_is_on_some_page(db: Database) -> None:
    """What is searched per page is bounded; what can be reached by paging is not."""
    ids = await made(db, State.QUEUED, 2)
    await db.fetch("SELECT setval('tenure.job_id_seq', 350000)")
    young = await enqueue(db)

    assert flat(await pages(db, State.QUEUED)) == [young, *sorted(ids, reverse=True)]


async def test_what_runs_is_on_the_first_page_behind_any_number_of_queued_ones(
    db: Database,
) -> None:
    """Shows R12."""
    [running] = await made(db, State.RUNNING, 1)
    await db.fetch("SELECT setval('tenure.job_id_seq', 350000)")
    await enqueue(db)
    assert await pages(db, State.RUNNING) == [[running]]
    assert await pages(db, State.RUNNING, queue="none") == [[]]


async def test_many_leases_are_listed_like_what_is_queued(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenure._store.postgres.job_queries._LEASES", 3)
    ids = await made(db, State.RUNNING)
    assert flat(await pages(db, State.RUNNING, count=2)) == sorted(ids, reverse=True)


async def test_a_page_of_the_archive_comes_short_when_enough_was_searched(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many rows of a day do not match, a page reads a bounded number of rows."""
    wanted = await made(db, State.COMPLETED, 1, task="wanted")
    await made(db, State.COMPLETED, 5, task="other")
    monkeypatch.setattr("tenure._store.postgres.job_queries._SEARCHED_ARCHIVED", 2)

    found = await pages(db, State.COMPLETED, task="wanted")

    assert flat(found) == list(wanted)
    assert len(found) > 2
