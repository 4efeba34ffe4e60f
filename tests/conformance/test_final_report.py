"""A completion that carries a cursor and items: one transaction, under the whole lease."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from support.store import SECOND, B
from tenure._model.attempt import AttemptOutcome
from tenure._model.ids import Token
from tenure._model.job import State
from tenure._model.lease import SettleStatus
from tenure._model.outcome import FinalReport, Released, Succeeded
from tests.conformance.acts import BY, claim_one, count, ended, get, lose, running, settle

if TYPE_CHECKING:
    from support.store import Database
    from tenure._model.outcome import Outcome


def done(**report: Any) -> Outcome:
    return Succeeded({"pages": 2}, "no_more_results", FinalReport(**report))


@pytest.mark.parametrize("key", [None, "k"], ids=["without a key", "with a key"])
async def test_items_and_the_completion_are_one_report(db: Database, key: str | None) -> None:
    """A known key is ignored and counted once. Shows R23."""
    claimed = await running(db, key=key, target=100)
    await db.run(db.store.leases.progress(claimed.lease, cursor=1, items={"a": 1, "b": 2}))
    db.clock.advance(SECOND)
    report = done(cursor=2, items={"b": 9, "c": [3], "d": None})
    request = ended(claimed, report, log="its end")
    [settled] = await db.run(db.store.settlement.settle([request]))
    assert (settled.answer, settled.state) == (SettleStatus.SETTLED, State.COMPLETED)

    job = await get(db, claimed.job.id)
    assert (job.state, job.done_reason, job.result) == (
        State.COMPLETED,
        "no_more_results",
        {"pages": 2},
    )
    assert (job.items, job.cursor, job.ended_at) == (4, 2, db.clock.now)
    items = await db.run(db.store.jobs.items(job.id))
    assert items == {"a": 1, "b": 2, "c": [3], "d": None}
    [attempt] = await db.run(db.store.jobs.attempts(job.id))
    assert (attempt.outcome, attempt.log) == (AttemptOutcome.COMPLETED, "its end")


async def test_repeating_it_is_harmless(db: Database) -> None:
    claimed = await running(db)
    request = ended(claimed, done(items={"a": 1}))
    [first] = await db.run(db.store.settlement.settle([request]))
    again = ended(claimed, done(items={"a": 1, "b": 2}))
    [second, third] = await db.run(db.store.settlement.settle([again, again]))

    assert (first.answer, second.answer, third.answer) == (
        SettleStatus.SETTLED,
        SettleStatus.REPEATED,
        SettleStatus.REPEATED,
    )
    assert await db.run(db.store.jobs.items(claimed.job.id)) == {"a": 1}


async def test_a_late_one_is_accepted_while_no_one_has_the_job(db: Database) -> None:
    """As every completion is. Shows R5."""
    claimed = await running(db)
    db.clock.advance(claimed.lease.ttl + SECOND)
    settled = await settle(db, claimed, done(items={"a": 1}))

    assert (settled.answer, settled.late) == (SettleStatus.SETTLED, True)
    assert (await get(db, claimed.job.id)).items == 1


@pytest.mark.parametrize("why", ["rescued", "taken", "released", "revoked", "token", "owner"])
async def test_without_the_lease_nothing_of_it_is_kept(db: Database, why: str) -> None:
    """Shows R4."""
    claimed = await running(db)
    lease = claimed.lease
    match why:
        case "rescued" | "taken":
            await lose(db, claimed)
            if why == "taken":
                await claim_one(db, worker=B)
        case "released":
            await settle(db, claimed, Released())
        case "revoked":
            await db.run(db.store.job_commands.revoke([claimed.job.id], BY))
        case "token":
            lease = lease._replace(token=Token(lease.token - 1))
        case _:
            lease = lease._replace(claimed_by=B)
    before = await get(db, claimed.job.id)
    request = ended(claimed, done(cursor=1, items={"a": 1}))._replace(lease=lease)
    [settled] = await db.run(db.store.settlement.settle([request]))

    assert settled.answer is SettleStatus.REFUSED
    assert await count(db, "job_item") == 0
    assert await get(db, claimed.job.id) == before


@pytest.mark.parametrize(
    "report",
    [
        {"items": {"": 1}},
        {"items": {"a": "x" * 300_000}},
        {"cursor": "\0"},
        {"items": {"a": {1, 2}}},
    ],
    ids=["key", "size", "nul", "not json"],
)
async def test_a_report_that_cannot_be_stored_fails_its_job_alone(
    db: Database, report: dict[str, Any]
) -> None:
    """As a result that cannot be stored does."""
    bad, good, plain = await running(db), await running(db), await running(db)
    requests = [
        ended(bad, done(**report)),
        ended(good, done(items={"a": 1})),
        ended(plain, Succeeded()),
    ]
    answers = await db.run(db.store.settlement.settle(requests))

    assert [one.state for one in answers] == [State.FAILED, State.COMPLETED, State.COMPLETED]
    job = await get(db, bad.job.id)
    assert (job.done_reason, job.items) == ("unstorable", 0)
    assert (await get(db, good.job.id)).items == 1


async def test_a_locked_row_is_busy_and_stores_nothing(db: Database) -> None:
    claimed = await running(db)
    caller = await db.caller("caller")
    async with caller.transaction():
        await caller.connection.execute(
            f"SELECT FROM tenure.job WHERE id = {claimed.job.id} FOR UPDATE"
        )
        busy = await settle(db, claimed, done(items={"a": 1}))
    assert (busy.answer, await count(db, "job_item")) == (SettleStatus.BUSY, 0)

    assert (await settle(db, claimed, done(items={"a": 1}))).answer is SettleStatus.SETTLED
    assert await count(db, "job_item") == 1
