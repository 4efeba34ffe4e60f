"""How long a lease is: the call's word, the job's, the queue's, the setting's, the default."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from support.store import SECOND, A, lanes
from tests.conformance.acts import BY, enqueue, get

if TYPE_CHECKING:
    from support.store import Database


@pytest.mark.parametrize("limited", [False, True], ids=["unlimited", "limited"])
@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        (("call", "job", "queue", "setting"), 11),
        (("job", "queue", "setting"), 12),
        (("queue", "setting"), 13),
        (("setting",), 14),
        ((), 30),
    ],
)
async def test_the_nearest_word_decides(
    db: Database, given: tuple[str, ...], seconds: int, *, limited: bool
) -> None:
    """Shows R8."""
    if limited:
        await db.run(db.store.queues.limit("q", 5, BY))
    if "setting" in given:
        await db.run(db.store.settings.set("lease", 14, BY))
    if "queue" in given:
        lease = 13 * SECOND
        await db.run(db.store.queues.configure("q", BY, lease=lease, max_attempts=None))
    job_id = await enqueue(db, lease=12 * SECOND if "job" in given else None)
    ttl = 11 * SECOND if "call" in given else None
    claims = await db.run(db.store.leases.claim(lanes("q"), count=1, worker=A, ttl=ttl))

    [claimed] = claims.jobs
    assert claimed.lease.ttl == seconds * SECOND
    assert (await get(db, job_id)).lease_expires_at == db.clock.now + seconds * SECOND


async def test_another_queues_lease_is_not_taken(db: Database) -> None:
    """Shows R8."""
    await db.run(db.store.queues.configure("other", BY, lease=13 * SECOND, max_attempts=None))
    await enqueue(db)
    await enqueue(db, queue="other")
    claims = await db.run(db.store.leases.claim(lanes("q", "other"), count=2, worker=A))

    assert {c.job.queue: c.lease.ttl for c in claims.jobs} == {
        "q": 30 * SECOND,
        "other": 13 * SECOND,
    }


async def test_a_setting_holds_from_the_next_claim_on(db: Database) -> None:
    """Shows R38."""
    for expected, value in ((30.0, 20), (20.0, 12.5), (12.5, None)):
        job_id = await enqueue(db)
        claims = await db.run(db.store.leases.claim(lanes("q"), count=1, worker=A))
        assert [c.job.id for c in claims.jobs] == [job_id]
        assert claims.jobs[0].lease.ttl == timedelta(seconds=expected)
        if value is None:
            await db.run(db.store.settings.reset("lease", BY))
        else:
            await db.run(db.store.settings.set("lease", value, BY))
    await enqueue(db)
    claims = await db.run(db.store.leases.claim(lanes("q"), count=1, worker=A))

    assert claims.jobs[0].lease.ttl == 30 * SECOND


async def test_a_jobs_lease_outlives_a_retry(db: Database) -> None:
    claims = []
    await enqueue(db, lease=12 * SECOND, max_losses=1)
    claims.append(await db.run(db.store.leases.claim(lanes("q"), count=1, worker=A)))
    db.clock.advance(12 * SECOND)
    rescues = await db.run(db.store.leases.rescue())
    await db.run(db.store.job_commands.retry([rescues.jobs[0].job_id], BY))
    claims.append(await db.run(db.store.leases.claim(lanes("q"), count=1, worker=A)))

    assert [answer.jobs[0].lease.ttl for answer in claims] == [12 * SECOND, 12 * SECOND]
