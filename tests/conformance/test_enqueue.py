"""Enqueue: the result of a call, one job or many."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from support.store import SECOND
from tenure._model.job import EnqueueResult, NewJob, State, UniformBatch
from tenure.errors import PayloadError, QueryFailed
from tests.conformance.acts import a_job, claim, count, enqueue, get, roll_back

if TYPE_CHECKING:
    from support.store import Database


async def test_job_is_queued_as_requested(db: Database) -> None:
    """Shows R12."""
    request = NewJob(
        "mail.send",
        queue="mail",
        args={"to": ["a", None, True, 1.5, -(2**63), 'ü "\\{},NULL'], "n": {}},
        priority=7,
        max_attempts=5,
        meta={"trace": "t1"},
    )
    [answer] = await db.run(db.store.jobs.enqueue([request]))
    job = await get(db, answer.id)

    assert answer.created
    assert job.state is State.QUEUED
    assert (job.task, job.queue, job.priority) == ("mail.send", "mail", 7)
    assert (job.args, job.meta) == (request.args, {"trace": "t1"})
    assert (job.attempt, job.max_attempts, job.losses, job.token) == (0, 5, 0, 0)
    assert (job.claimed_by, job.lease_expires_at, job.ended_at) == (None, None, None)
    assert job.run_at == job.created_at == db.clock.now


async def test_omitted_options_use_the_defaults(db: Database) -> None:
    """Shows R13."""
    job = await get(db, await enqueue(db))

    assert (job.priority, job.max_attempts, job.args) == (5, 3, {})
    assert (job.key, job.held, job.meta) == (None, False, None)


async def test_an_empty_call_enqueues_nothing(db: Database) -> None:
    assert await db.run(db.store.jobs.enqueue([])) == []


async def test_answers_keep_the_order_of_requests(db: Database) -> None:
    jobs = [a_job(args={"n": n}, key=f"k{97 - n}" if n % 3 else None) for n in range(60)]
    answers = await db.run(db.store.jobs.enqueue(jobs))

    assert len({answer.id for answer in answers}) == 60
    for n, answer in enumerate(answers):
        assert (await get(db, answer.id)).args == {"n": n}


async def test_ids_grow_in_the_order_of_requests(db: Database) -> None:
    answers = await db.run(db.store.jobs.enqueue([a_job() for _ in range(100)]))
    ids = [answer.id for answer in answers]

    assert ids == sorted(ids)


async def test_a_key_that_comes_twice_in_one_call_makes_one_job(db: Database) -> None:
    """Shows R17."""
    jobs = [a_job(key="k", args={"n": 1}), a_job(), a_job(key="k", args={"n": 2})]
    first, plain, second = await db.run(db.store.jobs.enqueue(jobs))

    assert first.created
    assert plain.created
    assert second == EnqueueResult(first.id, created=False)
    assert (await get(db, first.id)).args == {"n": 1}


@pytest.mark.parametrize(
    ("requested", "due"),
    [
        ({"run_at": 60}, 60),
        ({"run_at": -60}, 0),
        ({"delay": 60}, 60),
        ({"delay": 0}, 0),
        ({"delay": -60}, 0),
    ],
)
async def test_the_due_time_is_bounded_below_by_the_clock(
    db: Database, requested: dict[str, int], due: int
) -> None:
    """Shows R11."""
    now = db.clock.now
    kinds = {"run_at": lambda s: now + s * SECOND, "delay": lambda s: s * SECOND}
    job_id = await enqueue(db, **{name: kinds[name](value) for name, value in requested.items()})

    assert (await get(db, job_id)).run_at == now + due * SECOND


async def test_a_delay_is_added_to_the_time_of_the_database(db: Database) -> None:
    [answer] = await db.run(db.real.jobs.enqueue([a_job(delay=timedelta(hours=1))]))
    [row] = await db.fetch(
        "SELECT run_at - created_at AS wait, clock_timestamp() - created_at AS age "
        "FROM tenure.job WHERE id = $1",
        answer.id,
    )

    assert timedelta(0) <= row["wait"] - timedelta(hours=1) < SECOND
    assert timedelta(0) <= row["age"] < 30 * SECOND


async def test_a_job_enqueued_as_held_is_not_claimed(db: Database) -> None:
    job_id = await enqueue(db, held=True)

    assert (await get(db, job_id)).held
    assert await claim(db) == []


async def test_a_call_with_and_without_keys_is_one_transaction(db: Database) -> None:
    await enqueue(db, key="other")
    hasty = await db.party("hasty", lock_timeout="50ms")
    busy = await db.caller("busy")
    async with busy.transaction() as session:
        await session.run(db.store.jobs.enqueue([a_job(key="k")]))
        with pytest.raises(QueryFailed) as refusal:
            await hasty.run(db.store.jobs.enqueue([a_job("plain"), a_job(key="k")]))

    assert refusal.value.is_conflict
    assert await count(db, "job", "task = 'plain'") == 0


@pytest.mark.parametrize("setting", ["lock_timeout", "statement_timeout"])
async def test_an_enqueue_that_waits_too_long_for_a_lock_may_pass_later(
    db: Database, setting: str
) -> None:
    hasty = await db.party("hasty", **{setting: "50ms"})
    busy = await db.caller("busy")
    async with busy.transaction():
        await busy.connection.execute("LOCK TABLE tenure.job IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(QueryFailed) as refusal:
            await hasty.run(db.store.jobs.enqueue([a_job("plain")]))

    assert refusal.value.is_temporary
    assert await count(db, "job", "task = 'plain'") == 0
    await hasty.run(db.store.jobs.enqueue([a_job("plain")]))
    assert await count(db, "job", "task = 'plain'") == 1


@pytest.mark.parametrize(
    ("sqlstate", "temporary"),
    [("53100", True), ("53200", True), ("25006", True), ("22003", False), ("54000", False)],
)
def test_a_refusal_says_whether_the_same_may_pass_later(sqlstate: str, *, temporary: bool) -> None:
    refusal = QueryFailed("no", sqlstate=sqlstate, statement="enqueue")
    assert (refusal.is_temporary, refusal.is_data_error) == (
        temporary,
        sqlstate[:2] in {"22", "54"},
    )


async def test_a_call_that_is_refused_has_enqueued_nothing_in_a_callers_transaction(
    db: Database,
) -> None:
    caller = await db.caller("caller")
    async with caller.transaction() as session:
        with pytest.raises(PayloadError):
            await session.run(db.store.jobs.enqueue([a_job(), a_job(key="k", args={"bad": "\0"})]))

    assert await count(db, "job") == 0


async def test_a_callers_rollback_takes_the_jobs_with_it(db: Database) -> None:
    """Shows R20."""
    caller = await db.caller("caller")
    await roll_back(caller, db.store.jobs.enqueue([a_job(), a_job(key="k")]))
    assert await count(db, "job") == await count(db, "job_key") == 0

    async with caller.transaction() as session:
        answers = await session.run(db.store.jobs.enqueue([a_job(), a_job(key="k")]))
        assert await count(db, "job") == 0

    assert [answer.created for answer in answers] == [True, True]
    assert await count(db, "job") == 2


@pytest.mark.parametrize("longest", [1_000_000, 10], ids=["as one list", "too long for one"])
async def test_jobs_that_are_alike_are_queued_as_if_one_by_one(
    db: Database, monkeypatch: pytest.MonkeyPatch, longest: int
) -> None:
    monkeypatch.setattr("tenure._store.postgres.jobs._LONGEST_LIST", longest)
    alike = NewJob("send", queue="mail", priority=7, delay=SECOND, max_losses=2, meta={"t": 1})
    args = [{"n": n, "text": 'ü "\\{},NULL'} for n in range(3)]
    answers = await db.run(db.store.jobs.enqueue(UniformBatch(alike, args)))
    jobs = [await get(db, answer.id) for answer in answers]

    assert [answer.created for answer in answers] == [True] * 3
    assert sorted(answer.id for answer in answers) == [answer.id for answer in answers]
    assert [job.args for job in jobs] == args
    assert {(job.task, job.queue, job.priority, job.max_attempts) for job in jobs} == {
        ("send", "mail", 7, 3)
    }
    assert all(job.meta == {"t": 1} for job in jobs)
    assert all(job.run_at == db.clock.now + SECOND for job in jobs)


async def test_jobs_that_are_alike_in_their_key_are_one(db: Database) -> None:
    first, second = await db.run(
        db.store.jobs.enqueue(UniformBatch(NewJob("send", key="k"), [{}, {"n": 2}]))
    )

    assert (first.created, second.created) == (True, False)
    assert first.id == second.id
    assert (await get(db, first.id)).args == {}
