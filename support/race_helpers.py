"""The moves that races are made of: jobs to quarrel over, and a party that is seen waiting."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from support.store import SECOND, A, lanes
from tenure._model.audit import By
from tenure._model.job import NewJob, State
from tenure._model.outcome import Failed, SettleRequest, Succeeded
from tenure._rules import lifecycle
from tenure._store.postgres.sessions import AsyncSession
from tenure.errors import Error

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from datetime import timedelta

    from support.store import Database, Party
    from tenure._model.attempt import AttemptRow
    from tenure._model.ids import JobId, WorkerId
    from tenure._model.lease import ClaimResult, Lease
    from tenure._model.outcome import Outcome
    from tenure._store.postgres.store import PostgresStore
    from tenure._store.steps import Op

T = TypeVar("T")
LEASE = 30 * SECOND
BY = By("operator", reason="a race")
BROKEN = Failed(Error("ValueError", "broken"))


def job(**fields: Any) -> NewJob:
    """A job of the one task there is."""
    return NewJob("work", **fields)


def claim(
    store: PostgresStore,
    *queues: str,
    count: int = 1,
    worker: WorkerId = A,
    ttl: timedelta = LEASE,
) -> Op[ClaimResult]:
    """Ask for jobs of these queues, or of the default one, without floors."""
    return store.leases.claim(lanes(*queues or ("default",)), count=count, worker=worker, ttl=ttl)


def leases(claims: ClaimResult) -> list[Lease]:
    return [claimed.lease for claimed in claims.jobs]


async def enqueued(db: Database, count: int = 1, **fields: Any) -> list[JobId]:
    """That many jobs, committed."""
    answers = await db.run(db.store.jobs.enqueue([job(**fields) for _ in range(count)]))
    return [answer.id for answer in answers]


async def held(db: Database, count: int = 1, **fields: Any) -> list[Lease]:
    """Leases of worker A on that many new jobs, committed."""
    await enqueued(db, count, **fields)
    return leases(await db.run(claim(db.store, fields.get("queue", "default"), count=count)))


async def dead_letter(db: Database, **fields: Any) -> JobId:
    """A job that has failed for good."""
    [lease] = await held(db, max_attempts=1, **fields)
    await db.run(db.store.settlement.settle([ended(lease, BROKEN)]))
    return lease.job_id


def ended(lease: Lease, outcome: Outcome | None = None) -> SettleRequest:
    """A first attempt of three that ended so; by default, well."""
    outcome = outcome or Succeeded()
    return SettleRequest(lease, lifecycle.settle(outcome, attempt=1, limit=3, backoff=LEASE))


@asynccontextmanager
async def undone(party: Party) -> AsyncIterator[AsyncSession]:
    """A caller's transaction on this connection that is rolled back at its end."""
    async with party.connection.transaction(force_rollback=True):
        yield AsyncSession(party.connection, own=False)


async def waiting(db: Database, party: Party, op: Op[T]) -> asyncio.Task[T]:
    """Start an operation and return once the server says that it waits for a lock."""
    task = asyncio.create_task(party.run(op))
    seen = asyncio.create_task(db.until_blocked(party.name))
    await asyncio.wait({task, seen}, return_when=asyncio.FIRST_COMPLETED)
    if task.done():
        seen.cancel()
        raise AssertionError(f"{party.name} did not wait: {task.exception() or task.result()}")
    await seen
    return task


async def state(db: Database, job_id: JobId) -> State | None:
    """Where the job is, as seen from outside every transaction."""
    rows = await db.fetch(
        "SELECT state FROM tenure.job WHERE id = $1 "
        "UNION ALL SELECT state FROM tenure.job_archive WHERE id = $1 "
        "UNION ALL SELECT 'failed' FROM tenure.job_failed WHERE id = $1",
        job_id,
    )
    if len(rows) > 1:
        raise AssertionError(f"job {job_id} is in several places: {rows}")
    return State(rows[0]["state"]) if rows else None


async def attempts(db: Database, job_id: JobId) -> Sequence[AttemptRow]:
    return await db.run(db.store.jobs.attempts(job_id))


async def done_by_a_worker(db: Database) -> None:
    """Do what a worker does, until nothing is left."""
    for _ in range(200):
        if not await db.run(db.real.operations.list()):
            await asyncio.sleep(0.05)
        elif all(row.next_at is None for row in await db.run(db.real.operations.list())):
            return
        else:
            await db.run(db.real.operations.run_chunk())
            await asyncio.sleep(0.02)
    raise AssertionError("it does not end")
