"""Workers' presence: registered, beating, asked to drain, forgotten."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from support.store import SECOND, A, B
from tenure._model.worker import HeartbeatResult, NewWorker, WorkerState
from tests.conformance.acts import BY, DAY

if TYPE_CHECKING:
    from support.store import Database

ANNA = NewWorker(A, "anna", "host-1", 4711, "1.2.3", ["mail", "q"], 100)


async def test_registered_worker_shows_its_details(db: Database) -> None:
    await db.run(db.store.workers.register(ANNA))
    await db.run(db.store.workers.register(replace(ANNA, id=B, name="bert", language="go")))
    anna, bert = await db.run(db.store.workers.list())

    assert (anna.id, anna.name, anna.host, anna.pid) == (A, "anna", "host-1", 4711)
    assert (anna.version, anna.language, anna.queues) == ("1.2.3", "python", ["mail", "q"])
    assert (anna.slots, anna.running, anna.state) == (100, 0, WorkerState.ACTIVE)
    assert (anna.started_at, anna.last_heartbeat_at) == (db.clock.now, db.clock.now)
    assert (anna.drain_requested, anna.meta) == (False, None)
    assert (bert.id, bert.language) == (B, "go")


async def test_a_beat_says_how_the_worker_is(db: Database) -> None:
    await db.run(db.store.workers.register(ANNA))
    started = db.clock.now
    db.clock.advance(5 * SECOND)
    op = db.store.workers.heartbeat(
        A, state=WorkerState.DRAINING, running=7, meta={"blocked": ["job 1"]}
    )
    assert await db.run(op) == HeartbeatResult(known=True, drain_requested=False)
    db.clock.advance(2 * SECOND)
    [worker] = await db.run(db.store.workers.list())

    assert (worker.state, worker.running) == (WorkerState.DRAINING, 7)
    assert worker.meta == {"blocked": ["job 1"]}
    assert (worker.started_at, worker.last_heartbeat_at) == (started, started + 5 * SECOND)
    assert worker.heartbeat_age == 2 * SECOND


@pytest.mark.parametrize("meta", [None, {}, {"a": None}])
async def test_a_beat_may_have_little_to_say(db: Database, meta: object) -> None:
    await db.run(db.store.workers.register(ANNA))
    await db.run(db.store.workers.heartbeat(A, state=WorkerState.ACTIVE, running=0, meta=meta))

    [worker] = await db.run(db.store.workers.list())
    assert worker.meta == meta


async def test_drain_request_arrives_with_the_next_heartbeat(db: Database) -> None:
    await db.run(db.store.workers.register(ANNA))
    assert await db.run(db.store.workers.drain(A, BY)) is True
    beat = await db.run(db.store.workers.heartbeat(A, state=WorkerState.ACTIVE, running=3))

    assert beat == HeartbeatResult(known=True, drain_requested=True)
    [worker] = await db.run(db.store.workers.list())
    assert worker.drain_requested


async def test_unknown_worker_cannot_be_drained(db: Database) -> None:
    await db.run(db.store.workers.register(ANNA))

    assert await db.run(db.store.workers.drain(B, BY)) is False
    assert not (
        await db.run(db.store.workers.heartbeat(A, state=WorkerState.ACTIVE, running=0))
    ).drain_requested


async def test_forgotten_worker_registers_again(db: Database) -> None:
    await db.run(db.store.workers.register(ANNA))
    db.clock.advance(8 * DAY)
    assert (await db.run(db.store.maintenance.maintain())).pruned_workers == 1
    assert await db.run(db.store.workers.list()) == []
    beat = await db.run(db.store.workers.heartbeat(A, state=WorkerState.ACTIVE, running=0))
    assert beat == HeartbeatResult(known=False, drain_requested=False)

    await db.run(db.store.workers.register(ANNA))
    assert (await db.run(db.store.workers.heartbeat(A, state=WorkerState.ACTIVE, running=0))).known


async def test_registering_again_takes_the_new_word(db: Database) -> None:
    await db.run(db.store.workers.register(ANNA))
    await db.run(db.store.workers.heartbeat(A, state=WorkerState.OFFLINE, running=0))
    db.clock.advance(SECOND)
    await db.run(db.store.workers.register(replace(ANNA, queues=["q"], slots=5)))
    [worker] = await db.run(db.store.workers.list())

    assert (worker.state, worker.queues, worker.slots) == (WorkerState.ACTIVE, ["q"], 5)
    assert worker.last_heartbeat_at == db.clock.now
