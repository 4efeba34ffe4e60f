"""What an operator does to jobs: answered for each, in the audit, and rehearsed if asked."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from support.race_helpers import dead_letter, enqueued, held
from tenure.admin import By, Filter, State
from tenure.errors import InvalidValue
from tenure.types import CancelStatus, DeleteStatus, OperationState, RetryResult, RetryStatus

if TYPE_CHECKING:
    from support.store import Database
    from tenure.admin import Admin

ANA = By("ana", source="suite", reason="a trial")
SINCE = datetime(2026, 1, 1, tzinfo=UTC)


def state(admin: Admin, job_id: int) -> State | None:
    job = admin.jobs.get(job_id)
    return job.state if job else None


async def test_a_retry_brings_dead_letters_back(db: Database, admin: Admin) -> None:
    """Shows R15."""
    dead = await dead_letter(db)
    assert admin.jobs.retry([dead, 4711], ANA) == [
        RetryResult(RetryStatus.RETRIED),
        RetryResult(RetryStatus.NOT_FAILED),
    ]
    assert state(admin, dead) is State.QUEUED


async def test_a_retry_whose_key_is_taken_names_the_job_that_has_it(
    db: Database, admin: Admin
) -> None:
    """Shows R15, R17."""
    dead = await dead_letter(db, key="one")
    [younger] = await enqueued(db, key="one")
    assert admin.jobs.retry([dead], ANA) == [RetryResult(RetryStatus.KEY_HELD, younger)]


async def test_a_cancel_ends_what_is_queued_and_asks_what_runs(db: Database, admin: Admin) -> None:
    """Shows R36."""
    [lease] = await held(db)
    [queued] = await enqueued(db)
    assert admin.jobs.cancel([queued, lease.job_id, 4711], ANA) == [
        CancelStatus.CANCELLED,
        CancelStatus.REQUESTED,
        CancelStatus.NOT_LIVE,
    ]


async def test_held_job_continues_when_resumed(db: Database, admin: Admin) -> None:
    """Shows R36."""
    [job_id] = await enqueued(db)
    assert admin.jobs.resume([job_id], ANA) == [False]
    assert admin.jobs.hold([job_id, 4711], ANA) == [True, False]
    assert admin.jobs.resume([job_id], ANA) == [True]


async def test_a_revoked_job_is_over_and_a_discarded_one_is_gone(
    db: Database, admin: Admin
) -> None:
    [lease] = await held(db)
    dead = await dead_letter(db)
    assert admin.jobs.revoke([lease.job_id, dead], ANA) == [True, False]
    assert state(admin, lease.job_id) is State.CANCELLED
    assert admin.jobs.discard([dead, lease.job_id], ANA) == [True, False]
    assert state(admin, dead) is None


@pytest.mark.parametrize("verb", ["retry", "discard"])
async def test_a_rehearsal_on_dead_letters_answers_the_same_and_changes_nothing(
    db: Database, admin: Admin, verb: str
) -> None:
    dead = await dead_letter(db, key="one")
    rehearsed = getattr(admin.jobs, verb)([dead, 4711], ANA, dry_run=True)
    assert state(admin, dead) is State.FAILED
    assert admin.audit.list(f"job:{dead}") == []
    assert getattr(admin.jobs, verb)([dead, 4711], ANA) == rehearsed
    assert state(admin, dead) is not State.FAILED


@pytest.mark.parametrize("verb", ["cancel", "hold"])
async def test_a_rehearsal_on_queued_jobs_answers_the_same_and_changes_nothing(
    db: Database, admin: Admin, verb: str
) -> None:
    [job_id] = await enqueued(db)
    before = admin.jobs.get(job_id)
    rehearsed = await getattr(admin.jobs, f"a{verb}")([job_id], ANA, dry_run=True)
    assert admin.jobs.get(job_id) == before
    assert getattr(admin.jobs, verb)([job_id], ANA) == rehearsed
    assert admin.jobs.get(job_id) != before


async def test_what_was_done_is_in_the_audit_newest_first(db: Database, admin: Admin) -> None:
    [job_id] = await enqueued(db)
    admin.jobs.hold([job_id], ANA)
    admin.jobs.resume([job_id], By("bob"))
    rows = admin.audit.list(f"job:{job_id}")
    assert [(row.actor, row.source, row.action, row.reason) for row in rows] == [
        ("bob", "python", "resume", None),
        ("ana", "suite", "hold", "a trial"),
    ]


async def test_ids_may_be_texts_as_http_has_them(db: Database, admin: Admin) -> None:
    """Shows R36: what is done is answered and in the audit, however the id was written."""
    dead = await dead_letter(db)
    [queued, other] = await enqueued(db, 2)
    assert admin.jobs.hold([str(queued)], ANA) == [True]
    assert admin.jobs.move([str(queued)], ANA, priority=7) == [True]
    assert admin.jobs.cancel([str(queued), other], ANA) == [CancelStatus.CANCELLED] * 2
    assert admin.jobs.retry([str(dead)], ANA) == [RetryResult(RetryStatus.RETRIED)]
    assert await admin.jobs.adelete([str(queued)], ANA) == [DeleteStatus.DELETED]
    done = [row.action for row in admin.audit.list(f"job:{queued}")]
    assert done == ["delete", "cancel", "move", "hold"]
    assert (admin.jobs.get(str(other)), admin.jobs.attempts(str(dead))) == (
        admin.jobs.get(other),
        admin.jobs.attempts(dead),
    )
    assert admin.jobs.why(str(other)) == admin.jobs.why(other)
    started = admin.operations.start("cancel", Filter(ids=[str(dead)]), ANA)  # type: ignore[list-item] # as HTTP has it
    assert admin.operations.pause(str(started.id), ANA).state is OperationState.PAUSED


@pytest.mark.parametrize("wrong", ["seven", "", "-1", "٧", 1.5, True, None])
async def test_value_that_is_not_an_id_is_refused(admin: Admin, wrong: Any) -> None:
    for verb in (admin.jobs.cancel, admin.jobs.delete, admin.jobs.retry):
        with pytest.raises(InvalidValue, match="is not a job id: expected a number"):
            verb([wrong], ANA)
    with pytest.raises(InvalidValue, match="is not a job id"):
        admin.jobs.get(wrong)


async def test_one_text_is_not_several_ids(db: Database, admin: Admin) -> None:
    await enqueued(db, 12)
    wrong: Any
    for wrong in ("12", 12):
        with pytest.raises(InvalidValue, match=r"ids must be a list, got .*; write \["):
            admin.jobs.cancel(wrong, ANA)


async def test_operator_must_be_named_for_the_audit(db: Database, admin: Admin) -> None:
    [job_id] = await enqueued(db)
    ana: Any = "ana"
    taught = pytest.raises(InvalidValue, match=r"write By\('ana'\)")
    with taught:
        admin.jobs.cancel([job_id], ana)
    with taught:
        await admin.jobs.acancel([job_id], by=ana)
    with taught:
        admin.schedules.pause("nightly", ana)
    with taught:
        admin.schedules.backfill("nightly", SINCE, SINCE, ana)
    assert state(admin, job_id) is State.QUEUED


async def test_new_arguments_are_for_jobs_of_one_task(db: Database, admin: Admin) -> None:
    one = admin.jobs.enqueue("mail", {}, ANA)
    other = admin.jobs.enqueue("bill", {}, ANA)
    with pytest.raises(InvalidValue, match="one task, got jobs of bill, mail; name only"):
        admin.jobs.edit([one.id, other.id], ANA, args={"n": 1})
    assert admin.jobs.edit([one.id, other.id], ANA, priority=1) == ["edited", "edited"]


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({}, "an edit must change something"),
        ({"priority": 10}, "priority must be 0 to 9"),
        ({"max_attempts": 0}, "max_attempts must be 1 to 32,767, got 0"),
        ({"timeout": -1}, "timeout must be positive, got -1"),
        ({"tags": "vip"}, "tags must be a list"),
        ({"run_at": datetime(2040, 1, 1)}, "run_at must have a time zone"),  # noqa: DTZ001
    ],
)
async def test_an_edit_out_of_range_says_what_is_right(
    db: Database, admin: Admin, changes: dict[str, Any], why: str
) -> None:
    job = admin.jobs.enqueue("mail", {}, ANA)
    with pytest.raises(InvalidValue, match=why):
        admin.jobs.edit([job.id], ANA, **changes)
