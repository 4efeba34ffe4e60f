"""Operations: members frozen, done in chunks at a rate, paused, resumed, aborted, accounted for."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from support.store import SECOND
from tenure._model.audit import By
from tenure._model.job import State
from tenure._model.operation import (
    Filter,
    ItemOutcome,
    NewOperation,
    OperationItem,
    OperationKind,
    OperationState,
)
from tenure._rules import operations as rules
from tenure.config import DEFAULTS
from tenure.errors import InvalidValue, QueryFailed
from tests.conformance.acts import BY, DAY, count, enqueue, get
from tests.conformance.operating import (
    ALL,
    advance,
    dead_letters,
    finish,
    items,
    outcomes,
    read,
    start,
)

if TYPE_CHECKING:
    from support.store import Database

HALF = SECOND / 2
RETRIED = ItemOutcome.RETRIED


async def test_the_members_are_frozen_when_it_starts(db: Database) -> None:
    """Shows R15."""
    dead = await dead_letters(db, 3)
    operation = await start(db)
    assert (operation.total, operation.done, operation.state) == (3, 0, OperationState.PENDING)
    assert await items(db, operation.id) == [
        OperationItem(place, job_id, None) for place, job_id in enumerate(dead, 1)
    ]

    [late] = await dead_letters(db, 1)
    ended = await finish(db, operation.id)
    assert (ended.state, ended.done, ended.outcomes) == (OperationState.DONE, 3, {RETRIED: 3})
    assert (await get(db, late)).state is State.FAILED


async def test_a_chunk_is_half_a_second_of_the_rate_and_the_next_one_is_due_then(
    db: Database,
) -> None:
    dead = await dead_letters(db, 5)
    operation = await start(db, rate=4)
    assert await advance(db) == 2
    row = await read(db, operation.id)
    assert (row.state, row.done, row.started_at) == (OperationState.RUNNING, 2, db.clock.now)
    assert row.next_at == db.clock.now + HALF
    assert [(await get(db, i)).state for i in dead[:3]] == [
        State.QUEUED,
        State.QUEUED,
        State.FAILED,
    ]

    assert await advance(db) == 0
    db.clock.advance(HALF)
    assert await advance(db) == 2
    db.clock.advance(HALF)
    assert await advance(db) == 1
    row = await read(db, operation.id)
    assert (row.state, row.done, row.ended_at, row.next_at) == (
        OperationState.DONE,
        5,
        db.clock.now,
        None,
    )


async def test_who_comes_late_makes_up_for_one_second_and_no_more(db: Database) -> None:
    """The rate is a promise to what the jobs call upon: our outage must not become its flood."""
    await dead_letters(db, 12)
    operation = await start(db, rate=4)
    await advance(db)
    db.clock.advance(DAY)
    assert [await advance(db) for _ in range(4)] == [2, 2, 2, 0]
    assert (await read(db, operation.id)).next_at == db.clock.now + HALF


async def test_each_item_keeps_its_result(db: Database) -> None:
    """Shows R15."""
    dead = await dead_letters(db, 4)
    operation = await start(db)
    await db.run(db.store.job_commands.retry([dead[1]], BY))
    await db.run(db.store.job_commands.discard([dead[2]], BY))
    ended = await finish(db, operation.id)
    missed = ItemOutcome.NOT_FAILED
    assert await outcomes(db, operation.id) == dict(
        zip(dead, [RETRIED, missed, missed, RETRIED], strict=True)
    )
    assert ended.outcomes == {RETRIED: 2, missed: 2}


async def test_items_are_read_by_pages_and_by_their_outcome(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead = await dead_letters(db, 6)
    operation = await start(db)
    await db.run(db.store.job_commands.discard([dead[4]], BY))
    await finish(db, operation.id)
    page, more = await db.run(db.store.operations.items(operation.id, count=4))
    assert ([item.place for item in page], more) == ([1, 2, 3, 4], 4)
    page, more = await db.run(db.store.operations.items(operation.id, after=4, count=4))
    assert ([item.place for item in page], more) == ([5, 6], None)

    monkeypatch.setattr("tenure._store.postgres.operations._SEARCHED", 3)
    missed = ItemOutcome.NOT_FAILED
    page, more = await db.run(db.store.operations.items(operation.id, outcome=missed))
    assert (page, more) == ([], 3)
    page, more = await db.run(db.store.operations.items(operation.id, outcome=missed, after=3))
    assert ([item.job_id for item in page], more) == ([dead[4]], None)


async def test_paused_operation_continues_where_it_was(db: Database) -> None:
    await dead_letters(db, 4)
    operation = await start(db)
    await advance(db)
    paused = await db.run(db.store.operations.steer(operation.id, OperationState.PAUSED, BY))
    assert (paused.state, paused.done, paused.next_at) == (OperationState.PAUSED, 2, None)
    db.clock.advance(DAY)
    assert await advance(db) == 0
    again = await db.run(db.store.operations.steer(operation.id, OperationState.PAUSED, BY))
    assert again == paused

    resumed = await db.run(db.store.operations.steer(operation.id, OperationState.RUNNING, BY))
    assert (resumed.state, resumed.next_at) == (OperationState.RUNNING, db.clock.now)
    assert (await finish(db, operation.id)).outcomes == {RETRIED: 4}


async def test_one_that_was_paused_before_it_began_is_pending_again(db: Database) -> None:
    await dead_letters(db, 1)
    operation = await start(db)
    await db.run(db.store.operations.steer(operation.id, OperationState.PAUSED, BY))
    resumed = await db.run(db.store.operations.steer(operation.id, OperationState.RUNNING, BY))
    assert resumed.state is OperationState.PENDING


async def test_an_aborted_operation_leaves_the_rest_as_it_was(db: Database) -> None:
    """Shows R36."""
    dead = await dead_letters(db, 4)
    operation = await start(db)
    await advance(db)
    aborted = await db.run(db.store.operations.steer(operation.id, OperationState.ABORTED, BY))
    assert (aborted.state, aborted.ended_at) == (OperationState.ABORTED, db.clock.now)
    db.clock.advance(DAY)
    assert await advance(db) == 0
    assert list((await outcomes(db, operation.id)).values()) == [RETRIED, RETRIED, None, None]
    assert (await get(db, dead[2])).state is State.FAILED


async def test_what_has_ended_is_not_steered_any_more(db: Database) -> None:
    operation = await start(db)
    assert (operation.state, operation.total) == (OperationState.DONE, 0)
    for wanted in (OperationState.PAUSED, OperationState.RUNNING, OperationState.ABORTED):
        with pytest.raises(InvalidValue, match=f"operation {operation.id} is done"):
            await db.run(db.store.operations.steer(operation.id, wanted, BY))
    with pytest.raises(InvalidValue, match="operation 4711 does not exist"):
        await db.run(db.store.operations.steer(4711, OperationState.PAUSED, BY))


async def test_who_started_and_steered_it_is_in_the_audit_and_the_jobs_are_not(
    db: Database,
) -> None:
    """One row for the operation: the result of each job is on its items. Shows R36."""
    [dead] = await dead_letters(db, 1)
    operation = await start(db, given=Filter(task="task"))
    ana = By("ana", source="cli", reason="lunch")
    await db.run(db.store.operations.steer(operation.id, OperationState.PAUSED, ana))
    await db.run(db.store.operations.steer(operation.id, OperationState.RUNNING, ana))
    await finish(db, operation.id)
    rows = await db.run(db.store.audit.list(f"operation:{operation.id}"))
    assert [(row.action, row.actor, row.reason) for row in rows] == [
        ("operation.resume", "ana", "lunch"),
        ("operation.pause", "ana", "lunch"),
        ("operation.start", BY.actor, BY.reason),
    ]
    assert rows[-1].after == {
        "kind": "retry",
        "filter": {"task": "task"},
        "changes": None,
        "rate": 4,
        "total": 1,
    }
    assert await count(db, "audit", "target LIKE 'job:%'") == 0
    [member] = await db.run(db.store.operations.of_job(dead))
    assert (member.operation.id, member.operation.actor, member.outcome) == (
        operation.id,
        BY.actor,
        RETRIED,
    )


async def test_operations_are_read_newest_first(db: Database) -> None:
    first, second, third = [await start(db) for _ in range(3)]
    assert await db.run(db.store.operations.list(count=2)) == [third, second]
    assert await db.run(db.store.operations.list(before=second.id)) == [first]
    assert await db.run(db.store.operations.get(second.id)) == second
    assert await db.run(db.store.operations.get(4711)) is None


async def test_two_operations_take_turns(db: Database) -> None:
    dead = await dead_letters(db, 8)
    one = await start(db, given=Filter(ids=dead[:4]))
    other = await start(db, given=Filter(ids=dead[4:]))
    assert [await advance(db) for _ in range(3)] == [2, 2, 0]
    assert [(await read(db, row.id)).done for row in (one, other)] == [2, 2]


async def test_a_rehearsal_counts_and_keeps_nothing(db: Database) -> None:
    await dead_letters(db, 3)
    new = NewOperation(kind=OperationKind.RETRY, filter=ALL, rate=4)
    operation = await db.run(db.store.operations.start(new, BY, keep=False))
    assert operation.total == 3
    assert await count(db, "operation_item") == 0


async def test_more_than_an_operation_can_hold_is_refused_as_a_whole(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    await dead_letters(db, 3)
    monkeypatch.setattr(rules, "MOST_ITEMS", 2)
    with pytest.raises(InvalidValue, match="more than 2 jobs match"):
        await start(db)
    assert [await count(db, table) for table in ("operation", "operation_item")] == [0, 0]


async def test_a_value_that_the_database_refuses_costs_its_own_item_alone(db: Database) -> None:
    """The chunk is halved until the one to blame is alone."""
    ids = [await enqueue(db) for _ in range(5)]
    await db.fetch(
        "CREATE FUNCTION tenure.refuse() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION USING ERRCODE = '22003', MESSAGE = 'no'; END $$"
    )
    await db.fetch(
        "CREATE TRIGGER refuse BEFORE DELETE ON tenure.job FOR EACH ROW "
        f"WHEN (OLD.id = {ids[2]}) EXECUTE FUNCTION tenure.refuse()"
    )
    operation = await start(db, OperationKind.CANCEL, rate=10)
    ended = await finish(db, operation.id)
    assert ended.outcomes == {ItemOutcome.CANCELLED: 4, ItemOutcome.REFUSED: 1}
    assert (await outcomes(db, operation.id))[ids[2]] is ItemOutcome.REFUSED


async def test_what_else_the_database_refuses_puts_this_operation_off_and_no_other(
    db: Database,
) -> None:
    [dead] = await dead_letters(db, 1)
    queued = await enqueue(db)
    stuck = await start(db, OperationKind.CANCEL)
    other = await start(db, given=Filter(ids=[dead]))
    await db.fetch(
        "CREATE FUNCTION tenure.refuse() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION USING ERRCODE = '42501', MESSAGE = 'no'; END $$"
    )
    await db.fetch(
        "CREATE TRIGGER refuse BEFORE DELETE ON tenure.job "
        "FOR EACH ROW EXECUTE FUNCTION tenure.refuse()"
    )
    with pytest.raises(QueryFailed, match="42501"):
        await advance(db)
    row = await read(db, stuck.id)
    assert (row.done, row.next_at) == (0, db.clock.now + 5 * SECOND)
    assert await advance(db) == 1
    assert (await read(db, other.id)).state is OperationState.DONE

    await db.fetch("DROP TRIGGER refuse ON tenure.job")
    assert (await finish(db, stuck.id)).outcomes == {ItemOutcome.CANCELLED: 1}
    assert (await get(db, queued)).state is State.CANCELLED


async def test_ended_operations_are_pruned_with_their_items_after_their_time(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenure._store.postgres.maintenance._BATCH", 2)
    await dead_letters(db, 5)
    old = await start(db, OperationKind.DISCARD)
    await finish(db, old.id)
    await dead_letters(db, 1)
    waiting = await start(db)
    db.clock.advance(DEFAULTS.keep_operations - timedelta(hours=1))
    assert (await db.run(db.store.maintenance.maintain())).pruned_operations == 0
    db.clock.advance(timedelta(hours=2))
    assert (await db.run(db.store.maintenance.maintain())).pruned_operations == 1
    assert await db.run(db.store.operations.list()) == [waiting]
    assert await count(db, "operation_item") == 1
