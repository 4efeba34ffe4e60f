"""A day without a partition: history is filed under the newest day there is, and work continues."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.store import SECOND, B, lanes
from tenure._model.attempt import AttemptOutcome
from tenure._model.job import State
from tenure._model.lease import SettleStatus
from tenure._model.outcome import Succeeded
from tenure._model.results import CancelStatus
from tests.conformance.acts import (
    BY,
    DAY,
    ended,
    enqueue,
    get,
    lose,
    running,
    settle,
)

if TYPE_CHECKING:
    from datetime import date

    from support.store import Database

HISTORIES = ("attempt", "job_archive")


@pytest.fixture(params=[HISTORIES, ("attempt",), ("job_archive",)], ids=["both", "one", "other"])
async def yesterday(db: Database, request: pytest.FixtureRequest) -> date:
    """The newest day that both histories still have: today's partitions are gone."""
    today = db.clock.advance(3 * DAY).date()
    for history in request.param:
        await db.fetch(f"DROP TABLE tenure.{history}_{today:%Y%m%d}")
    return today - DAY


async def filed(db: Database) -> dict[str, list[date]]:
    """The days under which history was filed."""
    return {
        history: [
            row["filed_on"] for row in await db.fetch(f"SELECT filed_on FROM tenure.{history}")
        ]
        for history in HISTORIES
    }


async def test_settle_survives(db: Database, yesterday: date) -> None:
    """Shows R16."""
    claimed = await running(db)
    answer = await settle(db, claimed, Succeeded({"n": 1}))

    assert (answer.answer, answer.state) == (SettleStatus.SETTLED, State.COMPLETED)
    assert await filed(db) == {"attempt": [yesterday], "job_archive": [yesterday]}
    job = await get(db, claimed.job.id)
    assert (job.result, job.ended_at) == ({"n": 1}, db.clock.now)
    assert (await settle(db, claimed, Succeeded())).answer is SettleStatus.REPEATED


async def test_rescue_survives(db: Database, yesterday: date) -> None:
    """Shows R6."""
    claimed = await running(db)
    await db.run(db.store.job_commands.cancel([claimed.job.id], BY))
    await lose(db, claimed)

    assert await filed(db) == {"attempt": [yesterday], "job_archive": [yesterday]}
    assert (await get(db, claimed.job.id)).state is State.CANCELLED


async def test_cancel_survives(db: Database, yesterday: date) -> None:
    job_id = await enqueue(db)
    assert await db.run(db.store.job_commands.cancel([job_id], BY)) == [CancelStatus.CANCELLED]

    assert (await get(db, job_id)).state is State.CANCELLED
    assert (await filed(db))["attempt"] == []
    assert [row.actor for row in await db.run(db.store.audit.list(f"job:{job_id}"))] == ["ada"]


async def test_revoke_survives(db: Database, yesterday: date) -> None:
    claimed = await running(db)
    assert await db.run(db.store.job_commands.revoke([claimed.job.id], BY)) == [True]

    assert await filed(db) == {"attempt": [yesterday], "job_archive": [yesterday]}
    assert len(await db.run(db.store.audit.list(f"job:{claimed.job.id}"))) == 1


async def test_settle_in_a_callers_transaction_survives(db: Database, yesterday: date) -> None:
    """Shows R20."""
    claimed = await running(db)
    caller = await db.caller("caller")
    settlement = ended(claimed, Succeeded("x")).settlement
    async with caller.transaction() as session:
        await session.run(db.store.settlement.settle_within(claimed.lease, settlement))

    assert await filed(db) == {"attempt": [yesterday], "job_archive": [yesterday]}
    assert (await get(db, claimed.job.id)).result == "x"


@pytest.mark.parametrize("avoided", ["nestloop", "hashjoin", "mergejoin", "indexscan"])
async def test_the_newest_day_is_found_however_the_catalog_is_read(
    db: Database, avoided: str
) -> None:
    """On a caller's connection the plan is the caller's: every name in the catalog may be read."""
    claimed = await running(db)
    caller = await db.caller("caller")
    await caller.connection.execute(f"SET enable_{avoided} = off".encode())
    # A plan that is avoided has an enormous cost, and PostgreSQL would compile it for seconds.
    await caller.connection.execute("SET jit = off")
    settlement = ended(claimed, Succeeded("x")).settlement
    async with caller.transaction() as session:
        await session.run(db.store.settlement.check(claimed.lease))
        await session.run(db.store.settlement.settle_within(claimed.lease, settlement))

    assert (await get(db, claimed.job.id)).result == "x"


@pytest.mark.parametrize("avoided", ["nestloop", "hashjoin", "mergejoin", "indexscan"])
async def test_a_settle_finds_the_newest_day_however_the_catalog_is_read(
    db: Database, avoided: str
) -> None:
    """What an operator or a statistic does to plans does not keep a job from ending."""
    today = db.clock.advance(3 * DAY).date()
    await db.fetch(f"DROP TABLE tenure.attempt_{today:%Y%m%d}")
    claimed = await running(db)
    party = await db.party("worker", **{f"enable_{avoided}": "off"})
    [answer] = await party.run(db.store.settlement.settle([ended(claimed, Succeeded())]))

    assert answer.state is State.COMPLETED


async def test_progress_report_at_its_target_survives(db: Database, yesterday: date) -> None:
    """Shows R23."""
    claimed = await running(db, target=1)
    report = await db.run(db.store.leases.progress(claimed.lease, items={"a": 1}))

    assert report.reached
    assert (await get(db, claimed.job.id)).state is State.COMPLETED


async def test_a_limited_queue_is_claimed_on(db: Database, yesterday: date) -> None:
    """Shows R9. The claim sweeps the queue first, within its own transaction."""
    await db.run(db.store.queues.limit("q", 1, BY))
    claimed = await running(db)
    db.clock.advance(30 * SECOND)
    claims = await db.run(db.store.leases.claim(lanes("q"), count=1, worker=B))

    assert [one.job.id for one in claims.jobs] == [claimed.job.id]


async def test_upkeep_makes_the_day_again(db: Database, yesterday: date) -> None:
    await db.run(db.store.maintenance.maintain())
    claimed = await running(db)
    await settle(db, claimed, Succeeded())

    today = yesterday + DAY
    assert await filed(db) == {"attempt": [today], "job_archive": [today]}
    [attempt] = await db.run(db.store.jobs.attempts(claimed.job.id))
    assert attempt.outcome is AttemptOutcome.COMPLETED
