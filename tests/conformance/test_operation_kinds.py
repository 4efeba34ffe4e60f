"""What operations are for: each kind, each filter, and the verbs that came with them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from support.store import SECOND, A
from tenure._model.ids import JobId
from tenure._model.job import State
from tenure._model.operation import Changes, Filter, ItemOutcome, NewOperation, OperationKind
from tenure._model.outcome import Failed, Succeeded
from tenure._model.queue import Floor, Lane
from tenure._model.results import DeleteStatus
from tenure._rules.operations import selected
from tenure._rules.selector_syntax import parse
from tenure.errors import Error, InvalidValue
from tests.conformance.acts import (
    BY,
    DAY,
    ERROR,
    claim,
    claim_one,
    count,
    dead_letter,
    enqueue,
    get,
    running,
    settle,
)
from tests.conformance.operating import dead_letters, finish, outcomes, start

if TYPE_CHECKING:
    from support.store import Database

UNKNOWN = JobId(999_999)
LATER = datetime(2040, 1, 1, tzinfo=UTC)


async def completed(db: Database, **fields: object) -> JobId:
    """A job that ended well."""
    claimed = await running(db, **fields)  # type: ignore[arg-type]  # Whatever a job takes.
    await settle(db, claimed, Succeeded())
    return claimed.job.id


async def test_a_cancel_ends_what_is_queued_and_asks_what_runs(db: Database) -> None:
    """Shows R36."""
    held = await running(db)
    queued = await enqueue(db)
    await dead_letter(db, queue="other")
    operation = await start(db, OperationKind.CANCEL, Filter(queue="q"))
    await finish(db, operation.id)
    assert await outcomes(db, operation.id) == {
        held.job.id: ItemOutcome.REQUESTED,
        queued: ItemOutcome.CANCELLED,
    }
    assert (await get(db, queued)).state is State.CANCELLED


async def test_a_discard_deletes_dead_letters(db: Database) -> None:
    """Shows R15."""
    dead = await dead_letters(db, 2)
    operation = await start(db, OperationKind.DISCARD)
    assert (await finish(db, operation.id)).outcomes == {ItemOutcome.DISCARDED: 2}
    assert [await db.run(db.store.jobs.get(i)) for i in dead] == [None, None]


async def test_a_delete_takes_what_has_ended_and_leaves_what_lives(db: Database) -> None:
    done = await completed(db)
    queued = await enqueue(db)
    operation = await start(db, OperationKind.DELETE, Filter(ids=[done, queued, UNKNOWN]))
    await finish(db, operation.id)
    assert await outcomes(db, operation.id) == {
        done: ItemOutcome.DELETED,
        queued: ItemOutcome.LIVE,
        UNKNOWN: ItemOutcome.NOT_FOUND,
    }


async def test_a_delete_by_state_is_of_the_archive(db: Database) -> None:
    done = await completed(db)
    gone = await enqueue(db)
    await db.run(db.store.job_commands.cancel([gone], BY))
    operation = await start(db, OperationKind.DELETE, Filter(state=State.CANCELLED))
    assert (await finish(db, operation.id)).outcomes == {ItemOutcome.DELETED: 1}
    assert await db.run(db.store.jobs.get(gone)) is None
    assert (await get(db, done)).state is State.COMPLETED


async def test_a_move_puts_queued_jobs_elsewhere_with_their_age(db: Database) -> None:
    old = [await enqueue(db) for _ in range(2)]
    db.clock.advance(SECOND)
    young = await enqueue(db, queue="other", priority=7)
    operation = await start(
        db,
        OperationKind.MOVE,
        Filter(queue="q"),
        changes=Changes(queue="other", priority=7),
    )
    assert (await finish(db, operation.id)).outcomes == {ItemOutcome.MOVED: 2}
    found = await claim(db, count=9, queues=["other"])
    assert [claimed.job.id for claimed in found] == [*old, young]


async def test_a_moved_job_is_claimed_above_any_floor(db: Database) -> None:
    """It keeps its old time, which lies below the floor of the lane it comes into."""
    job_id = await enqueue(db)
    db.clock.advance(DAY)
    assert await db.run(db.store.job_commands.move([job_id], Changes(priority=9), BY)) == [True]
    [row] = await db.fetch("SELECT returned, priority, run_at FROM tenure.job")
    assert (row["returned"], row["priority"], row["run_at"]) == (True, 9, db.clock.now - DAY)
    floored = [Lane("q", 9, Floor(db.clock.now, UNKNOWN))]
    claims = await db.run(db.store.leases.claim(floored, count=1, worker=A))
    assert [claimed.job.id for claimed in claims.jobs] == [job_id]


async def test_a_job_with_a_new_time_is_due_at_the_earliest_now(db: Database) -> None:
    """Shows R11."""
    job_id = await enqueue(db, delay=DAY)
    moved = await db.run(
        db.store.job_commands.move([job_id], Changes(run_at=db.clock.now - DAY), BY)
    )
    assert moved == [True]
    [row] = await db.fetch("SELECT returned, run_at FROM tenure.job")
    assert (row["returned"], row["run_at"]) == (False, db.clock.now)


async def test_a_move_is_for_queued_jobs_alone_and_in_the_audit(db: Database) -> None:
    """Shows R36."""
    held = await running(db)
    queued = await enqueue(db, held=True)
    changes = Changes(queue="other", run_at=LATER)
    ids = [held.job.id, UNKNOWN, queued]
    assert await db.run(db.store.job_commands.move(ids, changes, BY)) == [False, False, True]
    job = await get(db, queued)
    assert (job.queue, job.run_at, job.held) == ("other", LATER, True)
    [row] = await db.run(db.store.audit.list(f"job:{queued}"))
    assert (row.action, row.actor, row.after) == (
        "move",
        BY.actor,
        {"queue": "other", "run_at": LATER.isoformat()},
    )
    assert await db.run(db.store.audit.list(f"job:{held.job.id}")) == []


async def test_a_deleted_job_leaves_neither_items_nor_its_key(db: Database) -> None:
    """Shows R17."""
    claimed = await running(db, key="k", key_for=DAY)
    await db.run(db.store.leases.progress(claimed.lease, items={"a": 1, "b": 2}))
    await settle(db, claimed, Succeeded())
    job_id = claimed.job.id
    assert await db.run(db.store.job_commands.delete([job_id], BY)) == [DeleteStatus.DELETED]
    assert [await count(db, table) for table in ("job_item", "job_key", "job_archive")] == [0] * 3
    [row] = await db.run(db.store.audit.list(f"job:{job_id}"))
    assert row.action == "delete"
    assert len(await db.run(db.store.jobs.attempts(job_id))) == 1
    assert await enqueue(db, key="k") != job_id


async def test_a_delete_leaves_the_key_to_a_younger_job(db: Database) -> None:
    """Shows R17."""
    dead = await dead_letter(db, key="k")
    younger = await enqueue(db, key="k")
    assert await db.run(db.store.job_commands.delete([dead, younger], BY)) == [
        DeleteStatus.DELETED,
        DeleteStatus.LIVE,
    ]
    assert await enqueue(db, key="k") == younger


async def test_the_filter_of_dead_letters(db: Database) -> None:
    """Shows R15."""
    plain = await dead_letter(db)
    db.clock.advance(SECOND)
    middle = db.clock.now
    other = await dead_letter(db, task="other")
    odd = await running(db, queue="odd")
    error = Error("KeyError", "k", signature="KeyError: k")
    await settle(db, odd, Failed(error, retryable=False))

    async def members(**given: object) -> set[int]:
        operation = await start(db, given=Filter(**given))  # type: ignore[arg-type]  # By name.
        return set(await outcomes(db, operation.id))

    assert await members(task="other") == {other}
    assert await members(queue="odd") == {odd.job.id}
    assert await members(signature="KeyError: k") == {odd.job.id}
    assert await members(signature="KeyError: k", queue="q") == set()
    assert await members(created_before=middle) == {plain}
    assert await members(ended_after=middle) == {other, odd.job.id}
    assert await members(ended_before=middle, state=State.FAILED) == {plain}
    assert await members(ids=[UNKNOWN, plain, plain]) == {plain, UNKNOWN}


async def test_the_filter_of_live_jobs(db: Database) -> None:
    held = await running(db)
    db.clock.advance(SECOND)
    queued = await enqueue(db, task="other")

    async def members(**given: object) -> set[int]:
        operation = await start(
            db,
            OperationKind.CANCEL,
            Filter(**given),  # type: ignore[arg-type]  # By name.
        )
        return set(await outcomes(db, operation.id))

    assert await members() == {held.job.id, queued}
    assert await members(state=State.QUEUED) == {queued}
    assert await members(task="task") == {held.job.id}
    assert await members(created_after=db.clock.now) == {queued}
    assert (await claim_one(db)).job.id == queued


async def test_an_operation_is_for_what_a_selector_means(db: Database) -> None:
    """Shows R15. What a search finds, an operation is for."""
    fields: dict[str, Any] = {"key": "k", "args": {"to": {"id": 7}}, "meta": {"tags": ["vip"]}}
    await dead_letter(db)
    dead = await dead_letter(db, task="other", **fields)
    done = await running(db, task="other", **fields)
    await settle(db, done, Succeeded())
    held = await running(db, task="other", lease=5 * SECOND, **{**fields, "key": "l"})
    tried = await running(db, task="other", **{**fields, "key": "m"})
    await settle(db, tried, Failed(ERROR))
    later = await enqueue(db, task="other", delay=DAY, **{**fields, "key": "n"})
    db.clock.advance(6 * SECOND)
    common = "task:other,no tag:vip args.to.id:7 created:<1d due:<=1h"

    async def members(kind: OperationKind, given: str) -> set[int]:
        operation = await start(
            db, kind, selected(parse(given)), changes=CHANGES if kind == "move" else None
        )
        return set(await outcomes(db, operation.id))

    retry, cancel, delete, move = (OperationKind(k) for k in ("retry", "cancel", "delete", "move"))
    assert await members(retry, f"{common} error:ValueError key:k attempt:1") == {dead}
    assert await members(retry, f"{common} error:KeyError") == set()
    assert await members(delete, f"{common} state:completed worker:{A}") == {done.job.id}
    assert await members(cancel, f"{common} worker:{A}") == {held.job.id}
    assert await members(cancel, f"{common} state:expired,retrying") == {held.job.id, tried.job.id}
    assert await members(cancel, "state:running task:no") == set()
    assert await members(move, "task:other state:scheduled") == {later}
    assert await members(move, "task:other state:due") == set()
    assert await members(cancel, f"id:{later}") == {later}


async def test_what_is_kept_of_a_selector_tells_no_payload(db: Database) -> None:
    answer = parse("state:failed queue:q error:E key:secret-1 args.to:secret-2")
    operation = await start(db, OperationKind.RETRY, selected(answer))
    output = await db.run(db.store.audit.list(f"operation:{operation.id}"))
    assert operation.filter.queue == "q"
    assert operation.filter.selector == "state:failed queue:q key:… error:E args.to:…"
    assert "secret" not in str([operation, output])


CHANGES = Changes(queue="other")


def by_selector(kind: OperationKind, given: str, **also: Any) -> NewOperation:
    return NewOperation(kind=kind, filter=Filter(selector=given, **also), rate=1)


@pytest.mark.parametrize(
    ("new", "why"),
    [
        (
            NewOperation(kind=OperationKind.RETRY, filter=Filter(), rate=0),
            "rate must be 1 to 10,000 jobs per second, got 0",
        ),
        (
            NewOperation(kind=OperationKind.RETRY, filter=Filter(), rate=10_001),
            "rate must be 1 to 10,000 jobs per second, got 10001",
        ),
        (
            NewOperation(kind=OperationKind.RETRY, filter=Filter(state=State.QUEUED), rate=1),
            "must be failed, got queued",
        ),
        (NewOperation(kind=OperationKind.DELETE, filter=Filter(), rate=1), "must name one"),
        (
            NewOperation(kind=OperationKind.CANCEL, filter=Filter(signature="E"), rate=1),
            "only dead letters",
        ),
        (
            NewOperation(kind=OperationKind.CANCEL, filter=Filter(ended_after=LATER), rate=1),
            "has not ended",
        ),
        (
            NewOperation(
                kind=OperationKind.RETRY,
                filter=Filter(ended_after=LATER.replace(tzinfo=None)),
                rate=1,
            ),
            "must have a time zone",
        ),
        (by_selector(OperationKind.RETRY, "state:due"), "must be failed, got queued"),
        (by_selector(OperationKind.RETRY, "stat:due"), "there is no field 'stat'"),
        (by_selector(OperationKind.RETRY, "id:1"), "a field for ids"),
        (by_selector(OperationKind.RETRY, "task:a", task="a"), "takes no other field"),
        (by_selector(OperationKind.RETRY, "queue:a", queue="b"), "takes no other field"),
        (by_selector(OperationKind.CANCEL, "error:E"), "on live jobs cannot select by error"),
        (by_selector(OperationKind.CANCEL, "ended:<1h"), "has not ended"),
        (by_selector(OperationKind.DELETE, "queue:a"), "must name one state"),
        (by_selector(OperationKind.DELETE, "state:failed,completed"), "must name one state"),
        (NewOperation(kind=OperationKind.RETRY, filter=Filter(ids=[]), rate=1), "ids must be 1 to"),
        (
            NewOperation(kind=OperationKind.RETRY, filter=Filter(ids=[0]), rate=1),
            "must be a job id",
        ),
        (
            NewOperation(kind=OperationKind.RETRY, filter=Filter(ids=[1], queue="q"), rate=1),
            "omit the rest",
        ),
        (
            NewOperation(kind=OperationKind.MOVE, filter=Filter(), rate=1),
            "a move must change something",
        ),
        (
            NewOperation(
                kind=OperationKind.MOVE, filter=Filter(), rate=1, changes=Changes(priority=10)
            ),
            "priority must be 0 to 9",
        ),
        (
            NewOperation(
                kind=OperationKind.MOVE, filter=Filter(), rate=1, changes=Changes(queue="no way")
            ),
            "queue name must be",
        ),
        (
            NewOperation(kind=OperationKind.RETRY, filter=Filter(), rate=1, changes=CHANGES),
            "changes are for a move",
        ),
    ],
)
async def test_what_cannot_be_done_is_refused(db: Database, new: NewOperation, why: str) -> None:
    with pytest.raises(InvalidValue, match=why):
        await db.run(db.store.operations.start(new, BY))
