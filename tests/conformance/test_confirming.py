"""A suspect's claim is confirmed before anything begins; before that nothing is counted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from support.store import SECOND, A, B, lanes
from tenure._model.ending import Ending
from tenure._model.job import State
from tenure._store.port import Query
from tenure._store.runner import arun
from tests.conformance.acts import BY, claim_one, count, get, lose, running

if TYPE_CHECKING:
    from support.store import Database
    from tenure._model.ids import JobId
    from tenure._model.lease import Claims
    from tenure._store.port import Rows, Step


class Gone(Exception):
    """The holder, before the answer to its claim."""


async def a_suspect(db: Database, **fields: Any) -> JobId:
    claimed = await running(db, **fields)
    await lose(db, claimed)
    return claimed.job.id


async def claim_and_then(db: Database, what: str) -> Claims:
    """Claim; the answer comes after the lease is over, or its holder is gone before it."""
    claimer = await db.party("claimer")

    async def perform(step: Step) -> Rows:
        rows = await claimer._perform(step)
        if isinstance(step, Query) and step.name.startswith("claim"):
            if what == "die":
                raise Gone
            db.clock.advance(30 * SECOND)
        return rows

    return await arun(db.store.claim(lanes("q"), count=1, worker=A), perform)


@pytest.mark.parametrize("limit", [None, 1])
async def test_a_suspect_whose_claim_nobody_heard_of_is_charged_with_nothing(
    db: Database, limit: int | None
) -> None:
    """Shows R6. Shows R15."""
    job_id = await a_suspect(db, max_attempts=2)
    if limit:
        await db.run(db.store.limit_queue("q", limit, BY))
    for _ in range(5):
        with pytest.raises(Gone):
            await claim_and_then(db, "die")
        db.clock.advance(30 * SECOND)
        await db.run(db.store.rescue())

    job = await get(db, job_id)
    assert (job.state, job.attempt, job.losses) == (State.QUEUED, 1, 1)
    again = await claim_one(db, worker=B)
    assert (again.job.attempt, again.job.losses) == (2, 1)


async def test_a_claim_that_nobody_heard_of_is_on_record_as_released(db: Database) -> None:
    """Shows R6."""
    job_id = await a_suspect(db)
    with pytest.raises(Gone):
        await claim_and_then(db, "die")
    db.clock.advance(30 * SECOND)
    await db.run(db.store.rescue())

    attempts = await db.run(db.store.attempts(job_id))
    assert [(one.outcome, one.renewals) for one in attempts] == [
        (Ending.LOST, 0),
        (Ending.RELEASED, 0),
    ]


async def test_a_suspect_whose_lease_is_over_when_the_answer_comes_is_not_handed_out(
    db: Database,
) -> None:
    """Shows R7."""
    job_id = await a_suspect(db)
    claims = await claim_and_then(db, "wait")

    assert (claims.jobs, claims.found) == ([], 1)
    await db.run(db.store.rescue())
    assert (await get(db, job_id)).losses == 1


async def test_from_its_confirmation_on_a_loss_counts(db: Database) -> None:
    """Shows R15."""
    job_id = await a_suspect(db, max_attempts=9)
    claimed = await claim_one(db, worker=B)
    assert await count(db, "job", "renewals = 0") == 1
    await lose(db, claimed)

    assert (await get(db, job_id)).losses == 2


async def test_a_confirmation_counts_the_lease_anew(db: Database) -> None:
    """It is the first renewal: the claim's own time may have gone by in a wait."""
    await a_suspect(db)
    claimed = await claim_one(db)
    [row] = await db.fetch("SELECT lease_expires_at, renewed_at FROM tenure.job")

    assert row["lease_expires_at"] - row["renewed_at"] == claimed.lease.ttl


async def test_a_revoked_claim_that_was_not_confirmed_has_no_renewals(db: Database) -> None:
    """Shows R36."""
    job_id = await a_suspect(db)
    with pytest.raises(Gone):
        await claim_and_then(db, "die")
    await db.run(db.store.revoke([job_id], BY))

    attempts = await db.run(db.store.attempts(job_id))
    assert sorted(one.renewals for one in attempts) == [0, 0]
