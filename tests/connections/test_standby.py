"""Commits that wait for a synchronous standby: what is not confirmed is not done."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar
from uuid import uuid4

import pytest

from support.store import SECOND, A, lanes
from tenure._model.attempt import AttemptOutcome
from tenure._model.audit import By
from tenure._model.job import NewJob, State
from tenure._model.lease import SettleResult, SettleStatus
from tenure._model.outcome import Settlement, SettleRequest
from tenure._store.postgres.connections import connect
from tenure._store.postgres.sessions import Session
from tenure.errors import OutcomeUnknown

if TYPE_CHECKING:
    from support.store import Database
    from tenure._model.lease import Lease
    from tenure._store.steps import Op

T = TypeVar("T")
DONE = Settlement(State.COMPLETED, AttemptOutcome.COMPLETED, reason="worker_done", result="x")


def keyed_job() -> NewJob:
    return NewJob("task", queue=f"q{uuid4()}", key=str(uuid4()))


async def once_it_waits(db: Database, name: str, act: str) -> None:
    """End the connection's wait for its standby, by cancel or terminate."""
    async with asyncio.timeout(20):
        while True:
            rows = await db.fetch(
                f"SELECT pg_{act}_backend(pid) AS done FROM pg_stat_activity "
                "WHERE application_name = $1 AND wait_event = 'SyncRep'",
                name,
            )
            if rows:
                return


async def interrupted(
    unheard: Database, local: Database, op: Op[T], *, act: str = "cancel"
) -> OutcomeUnknown:
    """Run an operation whose commit wait is ended from outside; answer with its error."""
    name = f"worker {uuid4()}"
    party = await unheard.party(name)
    task = asyncio.create_task(party.run(op))
    await once_it_waits(local, name, act)
    with pytest.raises(OutcomeUnknown) as unknown:
        await task
    return unknown.value


async def a_lease(db: Database) -> Lease:
    job = keyed_job()
    await db.run(db.store.jobs.enqueue([job]))
    claims = await db.run(db.store.leases.claim(lanes(job.queue), count=1, worker=A))
    return claims.jobs[0].lease


async def test_an_enqueue_whose_commit_wait_was_cancelled_is_unknown_not_done(
    unheard: Database, local: Database
) -> None:
    """Shows R18."""
    job = keyed_job()
    error = await interrupted(unheard, local, unheard.store.jobs.enqueue([job]))

    assert "not confirmed by the standby; try again" in str(error)
    [again] = await local.run(local.store.jobs.enqueue([job]))
    assert not again.created


async def test_asking_again_waits_for_the_standby_again(unheard: Database, local: Database) -> None:
    """Shows R18. A key that is found taken is not confirmed before the job it names is."""
    job = keyed_job()
    await local.run(local.store.jobs.enqueue([job]))

    await interrupted(unheard, local, unheard.store.jobs.enqueue([job]))


async def test_a_settle_whose_commit_wait_was_cancelled_is_unknown_and_can_be_sent_again(
    unheard: Database, local: Database
) -> None:
    """Shows R18."""
    lease = await a_lease(local)
    ended = [SettleRequest(lease, DONE)]
    await interrupted(unheard, local, unheard.store.settlement.settle(ended))
    await interrupted(unheard, local, unheard.store.settlement.settle(ended))

    assert await local.run(local.store.settlement.settle(ended)) == [
        SettleResult(SettleStatus.REPEATED)
    ]
    [attempt] = await local.run(local.store.jobs.attempts(lease.job_id))
    assert attempt.settle_repeats == 2


async def test_the_commit_of_several_statements_is_watched_too(
    unheard: Database, local: Database
) -> None:
    """Shows R18."""
    lease = await a_lease(local)
    error = await interrupted(
        unheard, local, unheard.store.job_commands.revoke([lease.job_id], By("ada"))
    )

    assert "mark" in str(error)
    job = await local.run(local.store.jobs.get(lease.job_id))
    assert job is not None
    assert job.state is State.CANCELLED


async def test_a_connection_that_is_terminated_in_its_commit_wait_leaves_it_unknown(
    unheard: Database, local: Database
) -> None:
    """Shows R18."""
    job = keyed_job()
    await interrupted(unheard, local, unheard.store.jobs.enqueue([job]), act="terminate")

    [again] = await local.run(local.store.jobs.enqueue([job]))
    assert not again.created


async def test_the_sync_session_watches_as_well(unheard: Database, local: Database) -> None:
    """Shows R18."""
    name = f"worker {uuid4()}"
    with connect(unheard.url, name=name) as connection:
        session = Session(connection)
        task = asyncio.create_task(
            asyncio.to_thread(session.run, unheard.store.jobs.enqueue([keyed_job()]))
        )
        await once_it_waits(local, name, "cancel")
        with pytest.raises(OutcomeUnknown, match="standby"):
            await task


async def test_a_session_that_was_left_in_doubt_works_on(
    unheard: Database, local: Database
) -> None:
    """The doubt is of one answer: what needs no commit is answered after it."""
    name = f"worker {uuid4()}"
    party = await unheard.party(name)
    task = asyncio.create_task(party.run(unheard.store.jobs.enqueue([keyed_job()])))
    await once_it_waits(local, name, "cancel")
    with pytest.raises(OutcomeUnknown):
        await task

    assert await party.run(unheard.store.settings.changed()) == {}


async def test_claims_that_wait_for_the_standby_past_their_lease_are_deaths_and_no_losses(
    unheard: Database, local: Database
) -> None:
    """No handler began, however often: nothing becomes a suspect. Shows R18."""
    job = NewJob("task", queue=f"q{uuid4()}", max_attempts=3)
    local.clock.now = unheard.clock.now
    [enqueued] = await local.run(local.store.jobs.enqueue([job]))
    request = lanes(job.queue)
    for _ in range(4):
        await interrupted(
            unheard, local, unheard.store.leases.claim(request, count=1, worker=A), act="terminate"
        )
        unheard.clock.advance(40 * SECOND)
        local.clock.now = unheard.clock.now
        await local.run(local.store.leases.rescue())

    row = await local.run(local.store.jobs.get(enqueued.id))
    assert row is not None
    assert (row.state, row.attempt, row.suspect) == (State.QUEUED, 0, False)
    assert (row.losses, row.worker_losses, row.deaths) == (0, 0, 4)
