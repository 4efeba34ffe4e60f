"""What an operator sees of jobs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from support.race_helpers import dead_letter, ended, enqueued, held
from tenure.admin import By, State
from tenure.errors import InvalidValue, PayloadError

if TYPE_CHECKING:
    from support.store import Database
    from tenure.admin import Admin

ANA = By("ana", source="suite", reason="a trial")


async def test_a_job_is_found_wherever_it_is(db: Database, admin: Admin) -> None:
    [queued] = await enqueued(db, queue="later")
    dead = await dead_letter(db)
    [lease] = await held(db)
    await db.run(db.store.settlement.settle([ended(lease)]))
    found = [admin.jobs.get(job_id) for job_id in (queued, dead, lease.job_id)]
    assert [job and job.state for job in found] == [State.QUEUED, State.FAILED, State.COMPLETED]
    assert admin.jobs.get(4711) is None


async def test_each_attempt_is_shown_with_its_error(db: Database, admin: Admin) -> None:
    """Shows R16."""
    job_id = await dead_letter(db)
    [attempt] = admin.jobs.attempts(job_id)
    assert (attempt.outcome, attempt.error_type) == ("failed", "ValueError")
    assert admin.jobs.attempts(4711) == []


async def test_items_are_read_above_a_key(db: Database, admin: Admin) -> None:
    [lease] = await held(db)
    await db.run(db.store.leases.progress(lease, items={"a": 1, "b": 2, "c": None}))
    assert admin.jobs.items(lease.job_id) == {"a": 1, "b": 2, "c": None}
    assert admin.jobs.items(lease.job_id, after="a", count=1) == {"b": 2}


async def test_lists_are_by_state_queue_and_task(db: Database, admin: Admin) -> None:
    """Shows R36."""
    [mail] = await enqueued(db, queue="mail")
    [other] = await enqueued(db, queue="other")
    dead = await dead_letter(db)
    assert [job.id for job in admin.jobs.list(State.QUEUED).jobs] == [other, mail]
    assert [job.id for job in admin.jobs.list(State.QUEUED, queue="mail").jobs] == [mail]
    assert [job.id for job in admin.jobs.list(State.FAILED, task="work").jobs] == [dead]
    assert admin.jobs.list(State.FAILED, task="play").jobs == []


@pytest.mark.parametrize("state", [State.QUEUED, State.CANCELLED])
async def test_pages_hold_every_job_once(db: Database, admin: Admin, state: State) -> None:
    ids = await enqueued(db, 7)
    if state is State.CANCELLED:
        admin.jobs.cancel(ids, ANA)
    seen: list[int] = []
    after = None
    while True:
        page = admin.jobs.list(state, count=3, after=after)
        seen += [job.id for job in page.jobs]
        after = page.next
        if after is None:
            break
    assert seen == sorted(ids, reverse=True)


@pytest.mark.parametrize("wrong", [{"count": 0}, {"count": 1001}, {"after": "yesterday"}])
async def test_a_page_that_cannot_be_is_refused(admin: Admin, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue):
        admin.jobs.list(State.QUEUED, **wrong)


async def test_a_job_is_enqueued_by_its_tasks_name_and_the_audit_says_by_whom(
    admin: Admin,
) -> None:
    """Shows R36."""
    answer = admin.jobs.enqueue("shop.mail", {"to": "ada"}, ANA, queue="mail")
    job = admin.jobs.get(answer.id)
    assert job is not None
    assert (job.task, job.queue, job.args) == ("shop.mail", "mail", {"to": "ada"})
    [row] = admin.audit.list(f"job:{answer.id}")
    assert (row.actor, row.source, row.action) == ("ana", "suite", "enqueue")
    assert row.reason == "a trial"


async def test_taken_key_makes_no_second_job_and_no_second_audit_row(
    admin: Admin,
) -> None:
    """Shows R17."""
    first = admin.jobs.enqueue("shop.mail", {}, ANA, key="ada")
    second = await admin.jobs.aenqueue("shop.mail", {}, ANA, key="ada")
    assert (first.created, second.created) == (True, False)
    assert first.id == second.id
    assert len(admin.audit.list(f"job:{first.id}")) == 1


async def test_what_an_enqueue_says_is_on_the_job(admin: Admin) -> None:
    """Shows R13."""
    at = datetime(2099, 1, 31, 9, tzinfo=UTC)
    answer = admin.jobs.enqueue(
        "work",
        {},
        ANA,
        priority=9,
        run_at=at,
        max_attempts=7,
        timeout=60,
        expires_in=timedelta(days=36_000),
        tags=["blue"],
        held=True,
    )
    job = admin.jobs.get(answer.id)
    assert job is not None
    assert (job.priority, job.run_at, job.max_attempts, job.held) == (9, at, 7, True)
    assert job.meta == {"tags": ["blue"], "timeout": 60, "expires_in": 36_000 * 86_400}


async def test_arguments_are_an_object(admin: Admin) -> None:
    with pytest.raises(PayloadError, match="args must be a mapping"):
        admin.jobs.enqueue("work", ["ada"], ANA)  # type: ignore[arg-type] # as a program might
    with pytest.raises(InvalidValue):
        admin.jobs.enqueue("no such name", {}, ANA)
    assert admin.jobs.list(State.QUEUED).jobs == []
