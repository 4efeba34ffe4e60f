"""Jobs that another program wrote and that cannot be read: dead letters, and no harm to others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.store import A, lanes
from tenure._model.attempt import AttemptOutcome
from tenure._model.job import State
from tenure._model.outcome import Succeeded
from tests.conformance.acts import claim, count, enqueue, get, settle

if TYPE_CHECKING:
    from support.store import Database

# What is written, and how the dead letter's error begins.
BAD = {
    "args, 3,000 deep": ("args", '{"a":' + "[" * 3000 + "]" * 3000 + "}", "args cannot be read"),
    "args, 200 deep": ("args", '{"a":' + "[" * 200 + "]" * 200 + "}", "args must be nested"),
    "args, 5,000 digits": ("args", '{"n":' + "9" * 5000 + "}", "args cannot be read"),
    "args, 400 digits": ("args", '{"n":[' + "9" * 400 + ".5]}", "args must not contain inf"),
    "meta, 3,000 deep": ("meta", '{"a":' + "[" * 3000 + "]" * 3000 + "}", "meta cannot be read"),
    "meta, tags": ("meta", '{"tags":5}', "tags in meta must be a list of strings"),
    "meta, fields": ("meta", '{"fields":[1]}', "fields in meta must be an object"),
    "meta, timeout": ("meta", '{"timeout":"abc"}', "timeout in meta must be a number"),
    "meta, long timeout": ("meta", '{"timeout":1e300}', "meta must not contain"),
    "meta, expires_in": ("meta", '{"expires_in":-1}', "expires_in in meta must be a number"),
    "meta, tick_at": ("meta", '{"tick_at":"soon"}', "tick_at in meta must be a time"),
    "meta, schedule": ("meta", '{"schedule":{}}', "schedule in meta must be a string"),
    "cursor, deep": ("cursor", "[" * 3000 + "]" * 3000, "the cursor cannot be read"),
    "progress, number": ("progress", "9" * 5000, "the progress cannot be read"),
}


@pytest.mark.parametrize("limited", [False, True])
@pytest.mark.parametrize("case", BAD)
async def test_a_claim_fails_an_unreadable_job_and_returns_its_neighbors(
    db: Database, case: str, limited: bool
) -> None:
    column, value, why = BAD[case]
    before = await enqueue(db)
    bad = await enqueue(db, key="held")
    after = await enqueue(db)
    await db.fetch(f"UPDATE tenure.job SET {column} = $1::jsonb WHERE id = $2", value, bad)

    claims = await db.run(db.store.leases.claim(lanes("q"), count=9, worker=A, limited=limited))
    assert [one.job.id for one in claims.jobs] == [before, after]
    [unreadable] = claims.unreadable
    assert (unreadable.lease.job_id, unreadable.lease.claimed_by) == (bad, A)
    for one in claims.jobs:
        assert (await settle(db, one, Succeeded())).state is State.COMPLETED

    letter = await get(db, bad)
    assert (letter.state, letter.done_reason, letter.losses) == (State.FAILED, "unreadable", 0)
    [attempt] = await db.run(db.store.jobs.attempts(bad))
    assert (attempt.outcome, attempt.error_type) == (AttemptOutcome.FAILED, "Unreadable")
    assert attempt.error_message is not None
    assert attempt.error_message.startswith(why)
    assert attempt.token == unreadable.lease.token
    # Its key is free again.
    assert (await enqueue(db, key="held")) != bad


@pytest.mark.parametrize("case", BAD)
async def test_lists_show_an_unreadable_job_as_such(db: Database, case: str) -> None:
    column, value, _ = BAD[case]
    good, bad = await enqueue(db), await enqueue(db)
    await db.fetch(f"UPDATE tenure.job SET {column} = $1::jsonb WHERE id = $2", value, bad)
    page = await db.run(db.store.job_queries.list(State.QUEUED))
    assert [job.id for job in page.jobs] == [bad, good]
    assert list(getattr(page.jobs[0], column)) == ["unreadable"]
    assert list(getattr(await get(db, bad), column)) == ["unreadable"]
    await claim(db, count=2)
    page = await db.run(db.store.job_queries.list(State.FAILED))
    assert list(getattr(page.jobs[0], column)) == ["unreadable"]


async def test_a_claim_passes_over_many_unreadable_jobs(db: Database) -> None:
    for _ in range(30):
        await enqueue(db)
    await db.fetch("""UPDATE tenure.job SET meta = '{"tags": 5}'""")
    good = await enqueue(db)
    [one] = await claim(db, count=4)
    assert one.job.id == good
    assert await count(db, "job_failed") == 30


@pytest.mark.parametrize("at", ["infinity", "-infinity", "4000-01-01 BC", "20000-01-01"])
async def test_times_outside_pythons_years_are_shown_as_its_first_or_last(
    db: Database, at: str
) -> None:
    """The archive has no check on its times."""
    await enqueue(db)
    [one] = await claim(db)
    await settle(db, one, Succeeded())
    await db.fetch("UPDATE tenure.job_archive SET created_at = $1::timestamptz", at)
    [job] = (await db.run(db.store.job_queries.list(State.COMPLETED))).jobs
    assert job.created_at.year in {1, 9999}
    assert (job.created_at.year == 1) == (at.startswith("-") or at.endswith("BC"))


async def test_a_rescue_copes_with_unreadable_meta(db: Database) -> None:
    await enqueue(db)
    [one] = await claim(db)
    await db.fetch("""UPDATE tenure.job SET meta = '{"fields": [1]}', lease_expires_at = now()""")
    db.clock.advance(one.lease.ttl)
    [rescued] = (await db.run(db.store.leases.rescue())).jobs
    assert list(rescued.meta) == ["unreadable"]
