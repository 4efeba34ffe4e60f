"""Dead letters by what they have in common: their task and the signature of their error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from support.store import SECOND, A, B
from tenure._model.outcome import Failed, Released
from tenure._model.stats import Count
from tenure._store.postgres import stats as rooms
from tenure.errors import Error
from tests.conformance.acts import claim_one, enqueue, lose, running, settle

if TYPE_CHECKING:
    from support.store import Database
    from tenure._model.ids import JobId
    from tenure._model.stats import FailedGroup


HOUR = 3600 * SECOND


async def failed(db: Database, task: str, message: str) -> JobId:
    claimed = await running(db, task)
    await settle(db, claimed, Failed(Error("ValueError", message), retryable=False))
    db.clock.advance(SECOND)
    return claimed.job.id


async def silent(db: Database, task: str) -> None:
    """A dead letter without an error: given back by a worker that did not say why."""
    claimed = await running(db, task, max_losses=0)
    await settle(db, claimed, Released(begun=True))


async def groups(db: Database, **requested: Any) -> list[FailedGroup]:
    return list(await db.run(db.store.stats.failed_groups(**{"count": 50, **requested})))


def names(found: list[FailedGroup]) -> list[tuple[str, str | None]]:
    return [(group.task, group.signature) for group in found]


ORDER = [
    ("a", "ValueError: one …"),
    ("a", "ValueError: two"),
    ("a", None),
    ("b", "ValueError: two"),
    ("c", None),
]


@pytest.fixture
async def dead(db: Database) -> Database:
    """Dead letters of three tasks in five groups."""
    for number in (1, 2, 3):
        await failed(db, "a", f"one {number}")
    await failed(db, "b", "two")
    await failed(db, "a", "two")
    await silent(db, "a")
    await silent(db, "c")
    await enqueue(db, "d")
    return db


async def test_a_group_is_a_task_and_a_signature_and_those_without_one_come_last(
    dead: Database,
) -> None:
    """Shows R15."""
    assert names(await groups(dead)) == ORDER


async def test_losses_by_rescue_are_one_group_for_all_holders_and_times(
    db: Database,
) -> None:
    """Shows R15."""
    for worker in (A, B):
        await enqueue(db, "a", max_losses=0)
        last = await claim_one(db, worker=worker)
        await lose(db, last)
    [group] = await groups(db)

    signature = "LeaseExpired: the lease expired and its worker did not give it back"
    assert (group.signature, group.count) == (signature, Count(2))
    assert (group.task, group.error_type) == ("a", "LeaseExpired")
    assert str(B) in str(group.error_message)


async def test_a_group_says_how_many_since_when_and_shows_its_last(db: Database) -> None:
    """Shows R15."""
    first = db.clock.now
    await failed(db, "a", "one 1")
    await failed(db, "a", "one 2")
    last = db.clock.now
    sample = await failed(db, "a", "one 3")
    [group] = await groups(db)

    assert (group.count, group.oldest_at, group.newest_at) == (Count(3), first, last)
    assert (group.sample, group.error_type, group.error_message) == (sample, "ValueError", "one 3")


async def test_a_group_says_when_they_ended_hour_by_hour(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shows R15."""
    await failed(db, "a", "one 1")
    db.clock.advance(23 * HOUR)
    for number in (2, 3):
        await failed(db, "a", f"one {number}")
    await silent(db, "a")
    [errors, others] = await groups(db)
    assert (errors.hours[0], sum(errors.hours[1:-1]), errors.hours[-1]) == (1, 0, 2)
    assert (sum(others.hours), others.hours[-1]) == (1, 1)
    assert [sum(group.hours) for group in await groups(db, queue="q")] == [3, 1]

    db.clock.advance(HOUR)
    assert [sum(group.hours) for group in await groups(db)] == [2, 1]
    monkeypatch.setattr(rooms, "_NEWEST", 1)
    assert [sum(group.hours) for group in await groups(db)] == [1, 1]


async def test_pages_continue_where_the_last_ended(dead: Database) -> None:
    found: list[FailedGroup] = []
    while page := await groups(dead, count=2, after=names(found)[-1] if found else None):
        found += page
    assert names(found) == ORDER


@pytest.mark.parametrize("task", ["a", "b", "c", "none"])
async def test_one_task_has_its_own_groups_alone(dead: Database, task: str) -> None:
    assert names(await groups(dead, task=task)) == [name for name in ORDER if name[0] == task]


async def test_beyond_the_bound_there_are_more(
    dead: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rooms, "COUNTED", 2)
    monkeypatch.setattr(rooms, "_MOST", 3)
    counts = [group.count for group in await groups(dead)]
    assert counts == [Count(2, more=True), *[Count(1)] * 4]


async def test_one_queue_has_its_own_groups_alone(dead: Database) -> None:
    """Shows R15."""
    claimed = await running(dead, "a", queue="apart")
    error = Error("ValueError", "one 4")
    await settle(dead, claimed, Failed(error, retryable=False))
    [group] = await groups(dead, queue="apart")

    assert (group.task, group.count, group.sample) == ("a", Count(1), claimed.job.id)
    assert (group.error_type, group.error_message) == ("ValueError", "one 4")
    assert names(await groups(dead, queue="q")) == ORDER
    assert await groups(dead, queue="none") == []


@pytest.mark.parametrize("task", ["a", "c", None])
async def test_pages_of_a_queue_continue_where_the_last_ended(
    dead: Database, task: str | None
) -> None:
    found: list[FailedGroup] = []
    request = {"queue": "q", "task": task, "count": 2}
    while page := await groups(dead, **request, after=names(found)[-1] if found else None):
        found += page
    assert names(found) == [name for name in ORDER if task in (name[0], None)]


async def test_of_a_queue_with_more_than_are_looked_at_all_counts_say_so(
    dead: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rooms, "COUNTED", 2)
    monkeypatch.setattr(rooms, "_MOST", 3)
    found = await groups(dead, queue="q")
    assert sum(group.count.value for group in found) == 3
    assert all(group.count.more for group in found)
