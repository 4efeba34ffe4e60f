"""One worker elsewhere: what it is told, and what it may say."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from support.horizon import add_dead, add_due, pinned
from tenure import Tenure
from tenure.admin import By, State
from tenure.config import DEFAULTS
from tenure.errors import InvalidValue, LeaseLost
from tenure.gateway import (
    Error,
    Failed,
    Released,
    Remote,
    RenewStatus,
    SettleCommand,
    SettleStatus,
    Succeeded,
    WorkerInfo,
)

if TYPE_CHECKING:
    from support.store import Database
    from tenure.gateway import AcquireResult

ME = WorkerInfo(name="here", language="none", slots=2)
BY = By("ops")


async def enqueue(app: Tenure, **options: object) -> int:
    answer = await app.admin.jobs.aenqueue("task", {"n": 1}, BY, **options)  # type: ignore[arg-type] # free options
    return answer.id


async def acquire(
    remote: Remote, *, holder: str = "me", wait: float = 0, count: int = 1
) -> AcquireResult:
    return await remote.acquire(holder, ["default"], ME, count=count, wait=timedelta(seconds=wait))


async def test_a_job_is_acquired_renewed_and_completed(app: Tenure, remote: Remote) -> None:
    """Shows R32."""
    job_id = await enqueue(app)

    [work] = (await acquire(remote)).work
    assert (work.job.id, work.job.args, work.job.attempt) == (job_id, {"n": 1}, 1)
    assert timedelta(seconds=2) < work.left <= timedelta(seconds=3)
    [renewal] = await remote.renew("me", [work.lease])
    assert renewal.answer is RenewStatus.RENEWED
    settled = await remote.settle_one(
        "me", SettleCommand(work.lease, Succeeded({"sum": 3}), "a line")
    )

    assert settled.answer is SettleStatus.SETTLED
    job = await app.admin.jobs.aget(job_id)
    assert job is not None
    assert (job.state, job.result) == (State.COMPLETED, {"sum": 3})
    [attempt] = await app.admin.jobs.aattempts(job_id)
    assert attempt.log == "a line"


async def test_nothing_is_there_when_nothing_is_due(remote: Remote) -> None:
    assert (await acquire(remote)).work == []


async def test_what_is_past_its_time_is_ended_and_not_handed_out(
    app: Tenure, remote: Remote, db: Database
) -> None:
    """The next one is, though many came before it. Shows R32."""
    old = [await enqueue(app, expires_in=60) for _ in range(3)]
    await db.fetch("UPDATE tenure.job SET created_at = created_at - interval '61 s'")
    fresh = await enqueue(app, expires_in=60)

    assert [work.job.id for work in (await acquire(remote)).work] == [fresh]
    assert (await acquire(remote, count=5)).work == []
    for job_id in old:
        job = await app.admin.jobs.aget(job_id)
        assert job is not None
        assert (job.state, job.done_reason) == (State.CANCELLED, "expired")


async def test_waiting_claim_gets_the_first_job_at_once(app: Tenure, remote: Remote) -> None:
    waiting = asyncio.create_task(acquire(remote, wait=30))
    await asyncio.sleep(0.05)
    assert not waiting.done()

    job_id = await enqueue(app)

    async with asyncio.timeout(10):
        [work] = (await waiting).work
    assert work.job.id == job_id


async def test_of_many_that_wait_each_gets_one_job(app: Tenure, remote: Remote) -> None:
    waiting = [asyncio.create_task(acquire(remote, wait=30)) for _ in range(20)]
    await asyncio.sleep(0.05)

    ids = {await enqueue(app) for _ in range(20)}

    async with asyncio.timeout(20):
        answers = await asyncio.gather(*waiting)
    assert {work.job.id for answer in answers for work in answer.work} == ids


async def test_a_failure_is_retried_by_the_backoff_and_at_the_cap_is_a_dead_letter(
    app: Tenure, remote: Remote
) -> None:
    """Shows R15."""
    job_id = await enqueue(app, max_attempts=1)
    later = await enqueue(app)
    first, second = (await acquire(remote, count=2)).work

    for work in (first, second):
        await remote.settle_one("me", SettleCommand(work.lease, Failed(Error("Oops", "no luck"))))

    dead, again = await app.admin.jobs.aget(job_id), await app.admin.jobs.aget(later)
    assert dead is not None
    assert again is not None
    assert (dead.state, dead.done_reason) == (State.FAILED, "attempts")
    assert (again.state, again.attempt) == (State.QUEUED, 1)
    assert again.run_at > again.created_at + timedelta(seconds=20)


async def test_what_is_released_is_given_back_with_its_attempt(app: Tenure, remote: Remote) -> None:
    await enqueue(app)
    acquired = await acquire(remote)

    await remote.release("me", acquired)

    [work] = (await acquire(remote)).work
    assert work.job.attempt == 1


async def test_progress_report_extends_the_lease_and_the_next_holder_resumes(
    app: Tenure, remote: Remote
) -> None:
    """Shows R21. Shows R22. Shows R23."""
    job_id = await enqueue(app, target=3)
    [work] = (await acquire(remote)).work

    reported = await remote.progress("me", work.lease, cursor={"page": 2}, items={"a": 1, "b": 2})
    assert (reported.items, reported.added, reported.reached) == (2, 2, False)
    await remote.settle_one("me", SettleCommand(work.lease, Released()))
    [again] = (await acquire(remote)).work
    assert again.job.cursor == {"page": 2}
    reported = await remote.progress("me", again.lease, items={"b": 2, "c": 3})

    assert (reported.items, reported.added, reported.reached) == (3, 1, True)
    job = await app.admin.jobs.aget(job_id)
    assert job is not None
    assert (job.state, job.done_reason) == (State.COMPLETED, "target_reached")


async def test_a_lease_that_was_taken_back_names_nothing(app: Tenure, remote: Remote) -> None:
    """Shows R5."""
    job_id = await enqueue(app)
    [work] = (await acquire(remote)).work
    await app.admin.jobs.arevoke([job_id], BY)

    [renewal] = await remote.renew("me", [work.lease])
    assert renewal.answer is RenewStatus.LOST
    with pytest.raises(LeaseLost):
        await remote.settle_one("me", SettleCommand(work.lease, Succeeded(1)))
    with pytest.raises(LeaseLost):
        await remote.progress("me", work.lease, done=1)


async def test_a_lease_is_worth_nothing_to_another_holder(app: Tenure, remote: Remote) -> None:
    await enqueue(app)
    [work] = (await acquire(remote)).work

    [renewal] = await remote.renew("another", [work.lease])

    assert renewal.answer is RenewStatus.LOST
    with pytest.raises(LeaseLost):
        await remote.settle_one("another", SettleCommand(work.lease, Succeeded(1)))
    [renewal] = await remote.renew("me", [work.lease])
    assert renewal.answer is RenewStatus.RENEWED


async def test_a_cancel_reaches_the_holder_by_its_renewal(app: Tenure, remote: Remote) -> None:
    job_id = await enqueue(app)
    [work] = (await acquire(remote)).work

    await app.admin.jobs.acancel([job_id], BY)

    [renewal] = await remote.renew("me", [work.lease])
    assert renewal.cancel_requested


async def test_settling_twice_is_harmless(app: Tenure, remote: Remote) -> None:
    await enqueue(app)
    [work] = (await acquire(remote)).work
    ending = SettleCommand(work.lease, Succeeded(1))

    first, second = [await remote.settle_one("me", ending) for _ in range(2)]

    assert (first.answer, second.answer) == (SettleStatus.SETTLED, SettleStatus.REPEATED)


async def test_draining_worker_gets_no_more_jobs(app: Tenure, remote: Remote) -> None:
    """Shows R30. Shows R31."""
    acquired = await acquire(remote)
    await remote.heartbeat()
    [row] = await app.admin.workers.alist()
    assert (row.name, row.language, row.slots, list(row.queues)) == ("here", "none", 2, ["default"])

    await app.admin.workers.adrain(row.id, BY)
    await remote.heartbeat()
    await enqueue(app)

    again = await remote.acquire("me", ["default"], ME, session=acquired.session)
    assert (again.draining, again.work) == (True, [])


@pytest.mark.parametrize("text", ["", "tl_", "tl_AAAA", "ts_" + "A" * 51, "tl_" + "!" * 51, "5"])
async def test_value_that_is_not_a_lease_is_refused(remote: Remote, text: str) -> None:
    with pytest.raises(InvalidValue, match="lease is not valid"):
        await remote.renew("me", [text])


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"count": 0}, "count must be 1 to 1,000, got 0"),
        ({"count": 1001}, "count must be 1 to 1,000, got 1001"),
        ({"wait": timedelta(seconds=56)}, "wait must be 0 to 55 s"),
        ({"queues": []}, "queues must name at least one queue"),
        ({"queues": ["no good"]}, "queue name must be"),
        ({"session": "mine"}, "session is not valid"),
    ],
)
async def test_what_cannot_be_acquired_is_refused(
    remote: Remote, given: dict[str, object], why: str
) -> None:
    request = {"queues": ["default"]} | given
    with pytest.raises(InvalidValue, match=why):
        await remote.acquire("me", introduction=ME, **request)  # type: ignore[arg-type] # free options


async def test_a_new_server_hands_out_recent_jobs_at_once_and_older_ones_by_a_scan(
    db: Database,
) -> None:
    """A transaction has been open for hours, and dead rows lie in front of the due jobs."""
    with pinned(db.url):
        now = datetime.now(UTC)
        add_dead(db.url, "default", 50_000, now - timedelta(hours=2))
        add_due(db.url, "default", 1, now - timedelta(hours=1), "old")
        add_due(db.url, "default", 1, now, "new")
        brief = replace(DEFAULTS, first_claim=timedelta(milliseconds=1))
        app = Tenure(db.url, defaults=brief)
        remote = Remote(app, name="server")
        async with remote.running():
            tasks = [(await acquire(remote, wait=20)).work[0].job.task for _ in range(2)]
        app.close()
        await app.aclose()
    assert tasks == ["new", "old"]
