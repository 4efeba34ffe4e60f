"""The caller's own transaction: its effects and the job's end are one commit."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import psycopg
import pytest

from support.store import SECOND, B
from tenure._model.attempt import AttemptOutcome
from tenure._model.job import State
from tenure._model.lease import RenewResult, RenewStatus
from tenure._model.outcome import Failed, Released, Snoozed, Succeeded
from tenure._store.postgres.sessions import AsyncSession, Session
from tenure.errors import LeaseLost
from tests.conformance.acts import (
    BY,
    ERROR,
    a_job,
    claim,
    claim_one,
    count,
    ended,
    get,
    lose,
    running,
    settle,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from support.store import Database
    from tenure._model.lease import ClaimedJob
    from tenure._model.outcome import Outcome
    from tenure._store.steps import Op

EFFECT = "INSERT INTO effect VALUES (1)"


class Caller(ABC):
    """One who has a connection and opens transactions on it."""

    @abstractmethod
    async def transact(self, *steps: str | Op[object]) -> None:
        """Do these steps and commit; an error rolls back and is raised."""


class AsyncCaller(Caller):
    def __init__(self, connection: psycopg.AsyncConnection[tuple[object, ...]]) -> None:
        self._connection = connection

    async def transact(self, *steps: str | Op[object]) -> None:
        async with self._connection.transaction():
            for step in steps:
                if isinstance(step, str):
                    await self._connection.execute(step.encode())
                else:
                    await AsyncSession(self._connection, own=False).run(step)


class SyncCaller(Caller):
    def __init__(self, connection: psycopg.Connection[tuple[object, ...]]) -> None:
        self._connection = connection

    async def transact(self, *steps: str | Op[object]) -> None:
        with self._connection.transaction():
            for step in steps:
                if isinstance(step, str):
                    self._connection.execute(step.encode())
                else:
                    Session(self._connection, own=False).run(step)


@pytest.fixture(params=["async", "sync"])
async def caller(db: Database, request: pytest.FixtureRequest) -> AsyncIterator[Caller]:
    await db.fetch("CREATE TABLE effect (n integer)")
    if request.param == "async":
        async with await psycopg.AsyncConnection.connect(db.url) as connection:
            yield AsyncCaller(connection)
    else:
        with psycopg.connect(db.url) as sync_connection:
            yield SyncCaller(sync_connection)


async def effects(db: Database) -> int:
    return len(await db.fetch("SELECT n FROM effect"))


def end(db: Database, claimed: ClaimedJob, outcome: Outcome) -> Op[None]:
    return db.store.settlement.settle_within(claimed.lease, ended(claimed, outcome).settlement)


@pytest.mark.parametrize("key", [None, "k"], ids=["plain", "keyed"])
async def test_effect_and_completion_are_one_commit(
    db: Database, caller: Caller, key: str | None
) -> None:
    """Shows R20."""
    claimed = await running(db, key=key)
    db.clock.advance(SECOND)
    check = db.store.settlement.check(claimed.lease)
    follow_up = db.store.jobs.enqueue([a_job("next"), a_job("next", key="n")])
    await caller.transact(check, EFFECT, follow_up, end(db, claimed, Succeeded({"n": 1})))

    job = await get(db, claimed.job.id)
    assert (job.state, job.result, job.ended_at) == (State.COMPLETED, {"n": 1}, db.clock.now)
    assert await effects(db) == 1
    assert [c.job.task for c in await claim(db, count=9)] == ["next", "next"]
    [attempt] = await db.run(db.store.jobs.attempts(job.id))
    assert attempt.outcome is AttemptOutcome.COMPLETED


async def test_a_rollback_undoes_both_and_leaves_the_lease_as_it_was(
    db: Database, caller: Caller
) -> None:
    """Shows R20."""
    claimed = await running(db, key="k")
    before = await get(db, claimed.job.id)
    with pytest.raises(psycopg.errors.DivisionByZero):
        await caller.transact(EFFECT, end(db, claimed, Succeeded()), "SELECT 1 / 0")

    assert await effects(db) == await count(db, "attempt") == 0
    assert await get(db, claimed.job.id) == before
    await caller.transact(EFFECT, end(db, claimed, Succeeded()))
    assert await effects(db) == 1
    assert (await get(db, claimed.job.id)).state is State.COMPLETED


@pytest.mark.parametrize("how", ["rescued", "claimed again", "revoked", "released", "completed"])
async def test_a_lost_lease_rolls_the_effects_back(db: Database, caller: Caller, how: str) -> None:
    """Shows R20. Shows R5."""
    claimed = await running(db)
    match how:
        case "revoked":
            await db.run(db.store.job_commands.revoke([claimed.job.id], BY))
        case "released":
            await settle(db, claimed, Released())
        case "completed":
            await settle(db, claimed, Succeeded("first"))
        case _:
            await lose(db, claimed)
    if how == "claimed again":
        await claim_one(db, worker=B)
    before = await get(db, claimed.job.id)

    with pytest.raises(LeaseLost, match="roll back"):
        await caller.transact(EFFECT, end(db, claimed, Succeeded("second")))
    assert await effects(db) == 0
    assert await get(db, claimed.job.id) == before


async def test_a_lease_that_is_over_but_not_taken_still_settles(
    db: Database, caller: Caller
) -> None:
    """Shows R5."""
    claimed = await running(db)
    db.clock.advance(claimed.lease.ttl + SECOND)
    await caller.transact(EFFECT, end(db, claimed, Succeeded()))

    [attempt] = await db.run(db.store.jobs.attempts(claimed.job.id))
    assert (attempt.late, attempt.outcome) == (True, AttemptOutcome.COMPLETED)
    assert await effects(db) == 1


@pytest.mark.parametrize(
    ("outcome", "state"),
    [
        (Failed(ERROR), State.QUEUED),
        (Failed(ERROR, retryable=False), State.FAILED),
        (Snoozed(SECOND), State.QUEUED),
    ],
    ids=["retried", "failed", "snoozed"],
)
async def test_any_outcome_can_share_the_transaction(
    db: Database, caller: Caller, outcome: Outcome, state: State
) -> None:
    """Shows R20."""
    claimed = await running(db)
    await caller.transact(EFFECT, end(db, claimed, outcome))

    assert (await get(db, claimed.job.id)).state is state
    assert await effects(db) == 1


async def test_a_check_says_early_that_the_lease_is_lost(db: Database, caller: Caller) -> None:
    """Shows R4."""
    claimed = await running(db)
    await caller.transact(db.store.settlement.check(claimed.lease))
    await lose(db, claimed)

    with pytest.raises(LeaseLost):
        await caller.transact(EFFECT, db.store.settlement.check(claimed.lease))
    assert await effects(db) == 0


async def test_a_guard_fences_a_commit_without_ending_the_job(db: Database, caller: Caller) -> None:
    """Shows R20."""
    claimed = await running(db)
    await caller.transact(EFFECT, db.store.leases.guard(claimed.lease))
    assert await effects(db) == 1
    assert (await get(db, claimed.job.id)).state is State.RUNNING

    await lose(db, claimed)
    await claim_one(db, worker=B)
    with pytest.raises(LeaseLost, match="roll back"):
        await caller.transact(EFFECT, db.store.leases.guard(claimed.lease))
    assert await effects(db) == 1


async def test_guarded_lease_cannot_be_taken_before_its_commit(db: Database) -> None:
    """Shows R20. Renewals continue meanwhile."""
    claimed = await running(db)
    party = await db.caller("caller")
    async with party.transaction() as session:
        await session.run(db.store.leases.guard(claimed.lease))
        [renewal] = await db.run(db.store.leases.renew([claimed.lease]))
        assert renewal == RenewResult(RenewStatus.RENEWED)
        db.clock.advance(claimed.lease.ttl)
        assert (await db.run(db.store.leases.rescue())).jobs == []

    assert len((await db.run(db.store.leases.rescue())).jobs) == 1


async def test_check_blocks_no_other_session(db: Database) -> None:
    """Between check and settle the handler's own work runs, and no sweep waits for it."""
    claimed = await running(db)
    party = await db.caller("caller")
    async with party.transaction() as session:
        await session.run(db.store.settlement.check(claimed.lease))
        assert await db.run(db.store.leases.renew([claimed.lease])) == [
            RenewResult(RenewStatus.RENEWED)
        ]
        await lose(db, claimed)
        with pytest.raises(LeaseLost):
            await session.run(end(db, claimed, Succeeded()))


async def test_the_answer_of_an_enqueue_counts_only_with_the_callers_commit(
    db: Database, caller: Caller
) -> None:
    """Shows R20."""
    with pytest.raises(psycopg.errors.DivisionByZero):
        await caller.transact(db.store.jobs.enqueue([a_job(key="k")]), "SELECT 1 / 0")

    assert await count(db, "job") == 0
