"""The verbs over operations: both faces, dry runs, pages and refusals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.race_helpers import dead_letter, enqueued, held, state
from tenure.admin import By, Changes, Filter, State
from tenure.errors import InvalidValue
from tenure.types import DeleteStatus, ItemOutcome, OperationKind, OperationState

if TYPE_CHECKING:
    from support.store import Database
    from tenure.admin import Admin

ANA = By("ana", source="suite", reason="a trial")


async def test_an_operation_is_started_advanced_and_read(db: Database, admin: Admin) -> None:
    """Shows R15."""
    dead = [await dead_letter(db) for _ in range(2)]
    started = admin.operations.start("retry", Filter(queue="default"), ANA, rate=100)
    assert (started.kind, started.total, started.rate) == (OperationKind.RETRY, 2, 100)
    assert await db.run(db.real.operations.run_chunk()) == 2
    row = admin.operations.get(started.id)
    assert row is not None
    assert (row.state, row.outcomes) == (OperationState.DONE, {ItemOutcome.RETRIED: 2})
    page = admin.operations.items(started.id, outcome=ItemOutcome.RETRIED, count=1)
    assert ([item.job_id for item in page.items], page.next) == ([dead[0]], 1)
    assert [member.outcome for member in admin.operations.of(dead[1])] == [ItemOutcome.RETRIED]
    assert admin.operations.list() == [row]


async def test_a_dry_run_says_how_many_and_starts_nothing(db: Database, admin: Admin) -> None:
    await dead_letter(db)
    rehearsed = admin.operations.start("discard", Filter(), ANA, dry_run=True)
    assert rehearsed.total == 1
    assert admin.operations.list() == []
    assert admin.audit.list(f"operation:{rehearsed.id}") == []


async def test_the_async_face_is_the_same(db: Database, admin: Admin) -> None:
    await dead_letter(db)
    started = await admin.operations.astart(OperationKind.DISCARD, Filter(), ANA)
    paused = await admin.operations.apause(started.id, ANA)
    assert paused.state is OperationState.PAUSED
    assert (await admin.operations.aresume(started.id, ANA)).state is OperationState.PENDING
    assert (await admin.operations.aabort(started.id, ANA)).state is OperationState.ABORTED
    assert (await admin.operations.alist())[0].id == started.id
    assert (await admin.operations.aitems(started.id)).items[0].outcome is None


@pytest.mark.parametrize(
    ("kind", "given", "why"),
    [
        ("explode", {}, "got 'explode'"),
        ("delete", {}, "must name one state"),
        ("move", {}, "a move must change something"),
    ],
)
def test_what_cannot_be_started_is_refused(
    admin: Admin, kind: str, given: dict[str, str], why: str
) -> None:
    with pytest.raises(InvalidValue, match=why):
        admin.operations.start(kind, Filter(**given), ANA)  # type: ignore[arg-type]  # To be refused.


def test_a_page_that_is_too_long_is_refused(admin: Admin) -> None:
    with pytest.raises(InvalidValue, match="count must be from 1 to 1,000, got 1001"):
        admin.operations.list(count=1001)
    with pytest.raises(InvalidValue, match="operation 4711 does not exist"):
        admin.operations.items(4711)


async def test_queued_jobs_are_moved(db: Database, admin: Admin) -> None:
    """Shows R36."""
    [lease] = await held(db)
    [job] = await enqueued(db)
    assert admin.jobs.move([job, lease.job_id], ANA, queue="other", priority=9, dry_run=True) == [
        True,
        False,
    ]
    assert admin.jobs.move([job], ANA, queue="other", priority=9) == [True]
    row = admin.jobs.get(job)
    assert row is not None
    assert (row.queue, row.priority) == ("other", 9)
    with pytest.raises(InvalidValue, match="a move must change something"):
        admin.jobs.move([job], ANA)


async def test_ended_jobs_are_deleted(db: Database, admin: Admin) -> None:
    dead = await dead_letter(db)
    [job] = await enqueued(db)
    assert admin.jobs.delete([dead, job, 4711], ANA) == [
        DeleteStatus.DELETED,
        DeleteStatus.LIVE,
        DeleteStatus.NOT_FOUND,
    ]
    assert await state(db, dead) is None
    assert await state(db, job) is State.QUEUED


async def test_a_move_of_many_takes_its_changes_along(db: Database, admin: Admin) -> None:
    await enqueued(db, 3)
    started = admin.operations.start(
        "move", Filter(queue="default"), ANA, changes=Changes(queue="other")
    )
    assert started.changes == Changes(queue="other")
    await db.run(db.real.operations.run_chunk())
    assert {row.queue for row in admin.jobs.list(State.QUEUED).jobs} == {"other"}
