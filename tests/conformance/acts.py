"""What the tests of this suite do again and again: a job, its claim, how it ends."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from support.store import SECOND, A, lanes
from tenure._model.audit import By
from tenure._model.job import NewJob, State
from tenure._model.lease import RenewStatus
from tenure._model.outcome import Failed, Loss, Lost, Released, SettleRequest
from tenure._model.queue import EVERY_QUEUE
from tenure._rules import lifecycle
from tenure._store.postgres.sessions import AsyncSession
from tenure.errors import Error

if TYPE_CHECKING:
    from collections.abc import Sequence

    from support.store import Database, Party
    from tenure._model.ids import JobId, WorkerId
    from tenure._model.job import JobRow
    from tenure._model.lease import ClaimedJob, ClaimResult, RescuedLease, SettleResult
    from tenure._model.outcome import Outcome
    from tenure._store.steps import Op

BY = By("ada", source="suite", reason="because")
DAY = timedelta(days=1)
ERROR = Error("ValueError", "no such thing")
DEATH = Error("ProcessDied", "its process was ended by SIGKILL")
DIED = Lost(Loss.SHARED, DEATH)
OWN = Lost(Loss.OWN, DEATH)
OUTAGE = Released(begun=True, error=Error("Outage", "the database did not answer"))


def a_job(task: str = "task", **fields: Any) -> NewJob:
    """A job (default queue: `q`)."""
    return NewJob(task, **{"queue": "q", **fields})


async def enqueue(db: Database, task: str = "task", **fields: Any) -> JobId:
    """Enqueue one job."""
    [answer] = await db.run(db.store.jobs.enqueue([a_job(task, **fields)]))
    return answer.id


async def claim(
    db: Database, *, count: int = 1, worker: WorkerId = A, queues: Sequence[str] = ("q",)
) -> Sequence[ClaimedJob]:
    """Claim from all lanes of these queues."""
    claims = await db.run(db.store.leases.claim(lanes(*queues), count=count, worker=worker))
    return claims.jobs


def unread(claims: ClaimResult, queue: str) -> bool:
    """Whether the answer says that this queue, or every one, was not read to its end."""
    return queue in claims.skipped_queues or EVERY_QUEUE in claims.skipped_queues


async def claim_one(db: Database, *, worker: WorkerId = A) -> ClaimedJob:
    """Claim the one job that is due."""
    [claimed] = await claim(db, worker=worker)
    return claimed


async def claim_a_suspect(db: Database, *, worker: WorkerId = A) -> ClaimedJob:
    """Claim the one job that is due, however many workers it has taken down, and confirm it."""
    most = lifecycle.MAX_WORKER_LOSSES
    claims = await db.run(db.store.leases.claim(lanes("q"), count=1, worker=worker, suspects=most))
    [claimed] = claims.jobs
    if claimed.confirm:
        assert await db.run(db.store.leases.confirm([claimed.lease])) == [True]
    return claimed


async def running(db: Database, task: str = "task", **fields: Any) -> ClaimedJob:
    """Enqueue a job and claim it."""
    job_id = await enqueue(db, task, **fields)
    [claimed] = await claim(db, queues=[fields.get("queue", "q")])
    assert claimed.job.id == job_id
    return claimed


def ended(
    claimed: ClaimedJob,
    outcome: Outcome,
    *,
    backoff: timedelta = 30 * SECOND,
    log: str | None = None,
) -> SettleRequest:
    """How this running period ends by the rules of the life cycle."""
    job = claimed.job
    settlement = lifecycle.settle(
        outcome, attempt=job.attempt, limit=job.max_attempts, backoff=backoff
    )
    return SettleRequest(claimed.lease, settlement, log)


async def settle(db: Database, claimed: ClaimedJob, outcome: Outcome) -> SettleResult:
    """Settle one lease."""
    [answer] = await db.run(db.store.settlement.settle([ended(claimed, outcome)]))
    return answer


async def begin(db: Database, claimed: ClaimedJob) -> None:
    """Renew this lease for a handler that has begun: from here on its loss is known to be one."""
    [renewal] = await db.run(db.store.leases.renew([claimed.lease]))
    assert renewal.answer is RenewStatus.RENEWED


async def expire(db: Database, claimed: ClaimedJob) -> RescuedLease:
    """Let this lease run out and be rescued, whatever is known of its handler."""
    db.clock.advance(claimed.lease.ttl)
    rescues = await db.run(db.store.leases.rescue())
    [rescued] = [one for one in rescues.jobs if one.job_id == claimed.lease.job_id]
    return rescued


async def lose(db: Database, claimed: ClaimedJob) -> RescuedLease:
    """Lose a job with its whole worker: its handler began, then the lease ran out."""
    await begin(db, claimed)
    return await expire(db, claimed)


async def dead_letter(db: Database, task: str = "task", **fields: Any) -> JobId:
    """A job that failed for good."""
    claimed = await running(db, task, **fields)
    answer = await settle(db, claimed, Failed(ERROR, retryable=False))
    assert answer.state is State.FAILED
    return claimed.job.id


async def get(db: Database, job_id: JobId) -> JobRow:
    """The job, which must be somewhere."""
    job = await db.run(db.store.jobs.get(job_id))
    assert job is not None
    return job


async def counters(db: Database, job_id: JobId) -> tuple[int, int, int]:
    """The losses, worker losses and deaths of a job."""
    job = await get(db, job_id)
    return job.losses, job.worker_losses, job.deaths


async def count(db: Database, table: str, where: str = "true") -> int:
    """How many rows a table of the store has, seen from outside."""
    [row] = await db.fetch(f"SELECT count(*) AS rows FROM tenure.{table} WHERE {where}")
    rows: int = row["rows"]
    return rows


async def roll_back(caller: Party, op: Op[object]) -> None:
    """Perform an operation in a caller's transaction that is then rolled back."""
    await caller.connection.execute("BEGIN")
    await AsyncSession(caller.connection, own=False).run(op)
    await caller.connection.execute("ROLLBACK")
