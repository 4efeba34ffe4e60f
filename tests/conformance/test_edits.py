"""Edits of stored jobs, retries with other arguments, and ended jobs that run again."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from support.store import SECOND
from tenure._model.edit import JobChanges
from tenure._model.ids import JobId
from tenure._model.job import State
from tenure._model.outcome import Failed, Succeeded
from tenure._model.results import (
    EditStatus,
    RerunResult,
    RerunStatus,
    RetryResult,
    RetryStatus,
)
from tenure._rules.sealing import NOT_SEALING
from tenure.errors import InvalidValue, PayloadError
from tests.conformance.acts import (
    BY,
    ERROR,
    claim,
    claim_one,
    dead_letter,
    enqueue,
    get,
    running,
    settle,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from support.store import Database
    from tenure._model.audit import AuditRow

UNKNOWN = JobId(999_999)
SEALED = {"$sealed": "AAAA"}


async def edit(db: Database, *ids: JobId, **changes: Any) -> Sequence[EditStatus]:
    op = db.store.job_edits.edit(ids, JobChanges(**changes), BY, sealing=NOT_SEALING)
    return await db.run(op)


async def retry(db: Database, *ids: JobId, args: dict[str, Any]) -> Sequence[RetryResult]:
    return await db.run(db.store.job_edits.retry(ids, args, BY, sealing=NOT_SEALING))


async def rerun(
    db: Database, *ids: JobId, args: dict[str, Any] | None = None, keep_key: bool = False
) -> Sequence[RerunResult]:
    op = db.store.job_edits.rerun(ids, BY, args=args, keep_key=keep_key, sealing=NOT_SEALING)
    return await db.run(op)


async def completed(db: Database, **fields: Any) -> JobId:
    claimed = await running(db, **fields)
    await settle(db, claimed, Succeeded({"ok": True}))
    return claimed.job.id


async def last_audit(db: Database, job_id: JobId) -> AuditRow:
    [row] = await db.run(db.store.audit.list(f"job:{job_id}", count=1))
    return row


async def test_a_queued_job_runs_with_its_new_values(db: Database) -> None:
    job_id = await enqueue(db, args={"to": "ad", "n": 1}, meta={"m": 1, "tags": ["old"]})
    before = await get(db, job_id)
    at = db.clock.now + 60 * SECOND
    changes: dict[str, Any] = {
        "args": {"to": "ada"},
        "priority": 9,
        "run_at": at,
        "max_attempts": 7,
    }

    answers = await edit(db, job_id, **changes, timeout=5 * SECOND, tags=["new"])

    assert answers == [EditStatus.EDITED]
    assert await get(db, job_id) == replace(
        before, **changes, meta={"m": 1, "tags": ["new"], "timeout": 5.0}
    )
    assert await claim(db) == []
    db.clock.advance(60 * SECOND)
    assert (await claim_one(db)).job.args == {"to": "ada"}


async def test_a_dead_letter_keeps_its_new_values_until_it_is_retried(db: Database) -> None:
    job_id = await dead_letter(db, args={"n": 1}, max_attempts=1)
    answers = await edit(db, job_id, args={"n": 2}, priority=8, max_attempts=4, tags=[])
    assert answers == [EditStatus.EDITED]
    assert (await get(db, job_id)).state is State.FAILED

    await db.run(db.store.job_commands.retry([job_id], BY))

    job = (await claim_one(db)).job
    assert (job.args, job.priority, job.max_attempts) == ({"n": 2}, 8, 4)
    assert job.meta == {"tags": []}


async def test_only_queued_jobs_and_dead_letters_are_edited(db: Database) -> None:
    ended, active = await completed(db), (await running(db)).job.id
    dead, queued = await dead_letter(db), await enqueue(db)
    ids = [ended, active, dead, UNKNOWN, queued]

    assert await edit(db, *ids, priority=1) == [
        EditStatus.ENDED,
        EditStatus.RUNNING,
        EditStatus.EDITED,
        EditStatus.NOT_FOUND,
        EditStatus.EDITED,
    ]
    assert [(await get(db, one)).priority for one in (ended, active, dead, queued)] == [5, 5, 1, 1]
    assert await db.run(db.store.audit.list(f"job:{active}")) == []


async def test_a_dead_letter_has_no_start_time_to_edit(db: Database) -> None:
    dead = await dead_letter(db)
    answers = await edit(db, dead, run_at=db.clock.now + SECOND, priority=1)
    assert answers == [EditStatus.NOT_QUEUED]
    assert (await get(db, dead)).priority == 5


async def test_an_edited_job_keeps_its_age(db: Database) -> None:
    """Its new lane's floor may be above it. Shows R10."""
    edited = await enqueue(db)
    db.clock.advance(SECOND)
    younger = await enqueue(db, priority=9)
    assert [c.job.id for c in await claim(db)] == [younger]
    await edit(db, edited, priority=9)
    last = await enqueue(db, priority=9)
    await edit(db, edited, args={"n": 2})
    assert [c.job.id for c in await claim(db, count=9)] == [edited, last]


async def test_the_audit_has_what_an_edit_changed_and_hides_secrets(db: Database) -> None:
    await db.run(db.store.settings.set("redact", ["phone"], BY))
    args = {"to": "ad", "same": 1, "password": "hunter22", "phone": "555-123", "old": True}
    job_id = await enqueue(db, args=args, priority=3)
    new = {"to": "ada, not hunter22", "same": 1, "password": "hunter33", "phone": "555-124"}

    await edit(db, job_id, args=new, priority=3, max_attempts=9, tags=["password=hunter33"])

    row = await last_audit(db, job_id)
    assert (row.action, row.actor, row.reason) == ("edit", BY.actor, BY.reason)
    hidden = "<redacted>"
    assert row.before == {
        "max_attempts": 3,
        "tags": None,
        "args": {"to": "ad", "password": hidden, "phone": hidden, "old": True},
    }
    assert row.after == {
        "max_attempts": 9,
        "tags": [f"password={hidden}"],
        "args": {"to": f"ada, not {hidden}", "password": hidden, "phone": hidden},
    }


async def test_the_audit_has_only_the_size_of_large_arguments(db: Database) -> None:
    job_id = await enqueue(db, args={"text": "x" * 9000})
    await edit(db, job_id, args={"text": "short"})
    row = await last_audit(db, job_id)
    assert row.before == {"args": "9,012 bytes of JSON"}
    assert row.after == {"args": {"text": "short"}}


@pytest.mark.parametrize(
    ("args", "why"),
    [
        ({"password": "<redacted>"}, "must not contain <redacted>"),
        ({"deep": [{"url": "https://<redacted>@host"}]}, "must not contain <redacted>"),
        ({"<redacted>": 1}, "must not contain <redacted>"),
        ({"a": "<sealed>"}, "must not contain <sealed>"),
        (SEALED, r"must not have the name \$sealed"),
        ([1], "args must be a mapping"),
        ({"at": {1, 2}}, "must not contain a set"),
        ({"text": "x" * 300_000}, "at most 262,144 bytes"),
    ],
)
async def test_marks_and_arguments_that_cannot_be_stored_are_refused(
    db: Database, args: Any, why: str
) -> None:
    """What a page shows in place of a secret never replaces the secret."""
    queued, dead, ended = await enqueue(db, queue="r"), await dead_letter(db), await completed(db)
    for refused in (edit(db, queued, args=args), retry(db, dead, args=args)):
        with pytest.raises(PayloadError, match=why):
            await refused
    with pytest.raises(PayloadError, match=why):
        await rerun(db, ended, args=args)
    assert [(await get(db, one)).args for one in (queued, dead, ended)] == [{}, {}, {}]


async def test_an_edit_without_a_change_and_with_a_mark_as_a_tag_is_refused(db: Database) -> None:
    job_id = await enqueue(db)
    with pytest.raises(InvalidValue, match="an edit must change something"):
        await edit(db, job_id)
    with pytest.raises(InvalidValue, match="tags must not contain <redacted>"):
        await edit(db, job_id, tags=["a <redacted>"])


async def test_sealed_arguments_are_only_replaced_with_the_codec(db: Database) -> None:
    """Without it, they would be stored in clear."""
    queued, dead = await enqueue(db, args=SEALED, queue="r"), await dead_letter(db, args=SEALED)
    ended = await completed(db, args=SEALED)

    assert await edit(db, queued, dead, args={"n": 1}) == [EditStatus.SEALED] * 2
    assert await edit(db, queued, dead, priority=9) == [EditStatus.EDITED] * 2
    assert await retry(db, dead, args={"n": 1}) == [RetryResult(RetryStatus.SEALED)]
    assert await rerun(db, ended, args={"n": 1}) == [RerunResult(RerunStatus.SEALED)]
    assert (await get(db, dead)).state is State.FAILED

    [again] = await rerun(db, ended)
    assert again.job is not None
    assert [(await get(db, one)).args for one in (queued, dead, again.job)] == [SEALED] * 3


async def test_a_dead_letter_is_retried_with_other_arguments(db: Database) -> None:
    """Shows R15."""
    dead = await dead_letter(db, args={"to": "ad", "n": 1})
    queued = await enqueue(db, args={"n": 0}, queue="r")

    answers = await retry(db, dead, queued, UNKNOWN, args={"to": "ada", "n": 1})

    not_failed = RetryResult(RetryStatus.NOT_FAILED)
    assert answers == [RetryResult(RetryStatus.RETRIED), not_failed, not_failed]
    job = (await claim_one(db)).job
    assert (job.id, job.args, job.attempt) == (dead, {"to": "ada", "n": 1}, 1)
    assert (await get(db, queued)).args == {"n": 0}
    row = await last_audit(db, dead)
    assert (row.action, row.before, row.after) == (
        "retry",
        {"args": {"to": "ad"}},
        {"args": {"to": "ada"}},
    )


async def test_a_dead_letter_whose_key_is_held_keeps_its_arguments(db: Database) -> None:
    dead = await dead_letter(db, args={"n": 1}, key="k")
    holder = await enqueue(db, key="k")
    assert await retry(db, dead, args={"n": 2}) == [RetryResult(RetryStatus.KEY_HELD, holder)]
    assert (await get(db, dead)).args == {"n": 1}
    assert await db.run(db.store.audit.list(f"job:{dead}")) == []


async def test_an_ended_job_runs_again_as_a_new_job(db: Database) -> None:
    meta = {"tags": ["vip"], "timeout": 9.0, "expires_in": 60.0, "fields": {"tenant": "t"}}
    fields = {"args": {"n": 1}, "priority": 8, "max_attempts": 5, "key": "k", "meta": meta}
    old = await completed(db, **fields)
    before = await get(db, old)
    db.clock.advance(60 * SECOND)

    [result] = await rerun(db, old)

    assert result.answer is RerunStatus.ENQUEUED
    assert result.job not in (None, old)
    job = (await claim_one(db)).job
    assert (job.id, job.args, job.priority, job.max_attempts) == (result.job, {"n": 1}, 8, 5)
    assert (job.key, job.attempt, job.cursor, job.created_at) == (None, 1, None, db.clock.now)
    assert job.meta == meta | {"rerun_of": old}
    assert await get(db, old) == before
    row = await last_audit(db, old)
    assert (row.action, row.after, row.reason) == ("rerun", {"job": job.id}, BY.reason)
    made = await last_audit(db, job.id)
    assert (made.action, made.after) == ("enqueue", {"rerun_of": old})


async def test_dead_letters_and_cancelled_jobs_run_again_and_stay(db: Database) -> None:
    dead = await dead_letter(db, lease=20 * SECOND, max_losses=0, target=3)
    cancelled = await enqueue(db)
    await db.run(db.store.job_commands.cancel([cancelled], BY))
    active, queued = (await running(db)).job.id, await enqueue(db, queue="r")

    answers = await rerun(db, dead, cancelled, active, queued, UNKNOWN, args={"n": 2})

    assert [one.answer for one in answers] == [
        RerunStatus.ENQUEUED,
        RerunStatus.ENQUEUED,
        RerunStatus.LIVE,
        RerunStatus.LIVE,
        RerunStatus.NOT_FOUND,
    ]
    assert (await get(db, dead)).state is State.FAILED
    assert (await get(db, cancelled)).state is State.CANCELLED
    first, second = await claim(db, count=9)
    assert [first.job.args, second.job.args] == [{"n": 2}, {"n": 2}]
    assert first.lease.ttl == 20 * SECOND
    rows = await db.fetch("SELECT target, max_losses FROM tenure.job WHERE id = $1", first.job.id)
    assert [tuple(row.values()) for row in rows] == [(3, 0)]


async def test_a_key_is_only_taken_over_if_it_is_free_and_requested(db: Database) -> None:
    """Shows R17."""
    old = await completed(db, key="k")
    [first] = await rerun(db, old)
    assert first.job is not None
    assert (await get(db, first.job)).key is None

    [second] = await rerun(db, old, keep_key=True)
    assert second.job is not None
    assert (await get(db, second.job)).key == "k"

    [third] = await rerun(db, old, keep_key=True)
    assert third == RerunResult(RerunStatus.KEY_HELD, holder=second.job)


async def test_a_key_that_is_kept_after_its_job_is_not_free(db: Database) -> None:
    old = await completed(db, key="k", key_for=60 * SECOND)
    assert await rerun(db, old, keep_key=True) == [RerunResult(RerunStatus.KEY_HELD, holder=old)]
    db.clock.advance(61 * SECOND)
    [result] = await rerun(db, old, keep_key=True)
    assert result.answer is RerunStatus.ENQUEUED


async def test_a_retrying_job_keeps_its_attempts_and_its_cursor(db: Database) -> None:
    claimed = await running(db, args={"n": 1})
    await settle(db, claimed, Failed(ERROR, after=0 * SECOND))
    await edit(db, claimed.job.id, args={"n": 2}, max_attempts=2)
    again = await claim_one(db)
    assert (again.job.attempt, again.job.args) == (2, {"n": 2})
    answer = await settle(db, again, Failed(ERROR))
    assert answer.state is State.FAILED
