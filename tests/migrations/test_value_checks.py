"""The checks on values: existing rows that fail one become dead letters, legal ones stay."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import psycopg
import pytest

from tenure._model.job import NewJob
from tenure._store.postgres.schema import migrations
from tenure.config import LONGEST_LEASE, LONGEST_WAIT

if TYPE_CHECKING:
    from support.store import Database

BEFORE = next(each.version for each in migrations() if each.slug == "value_checks") - 1
LEGAL = [
    NewJob("work"),
    NewJob("t" * 200, queue="q" * 200, key="k" * 400, key_for=LONGEST_WAIT),
    NewJob("work", key="0", key_for=timedelta(0), max_attempts=32_767, max_losses=32_767),
    NewJob("work", max_attempts=1, max_losses=0, target=2_147_483_647, lease=LONGEST_LEASE),
    NewJob("work", lease=timedelta(seconds=5), target=1, meta={"tags": ["a"], "timeout": None}),
    NewJob("work", run_at=datetime.max.replace(tzinfo=UTC), held=True),
    NewJob("work", delay=LONGEST_WAIT),
]
BAD = [
    "attempt = 32767",
    "token = 9223372036854775807",
    "created_at = '-infinity'",
    "run_at = '4000-01-01 BC'",
    "lease = '290000 years'",
    "lease = '1 mon -29 days'",
    "key_for = '-1 day'",
    "args = '[]'",
    "meta = '\"x\"'",
    "task = ''",
    "state = 'running', claimed_by = gen_random_uuid(), lease_expires_at = 'infinity'",
]


async def test_existing_rows_that_fail_a_check_become_dead_letters(bare: Database) -> None:
    await bare.run(bare.real.schema.migrate(to=BEFORE))
    legal = await bare.run(bare.real.jobs.enqueue(LEGAL))
    bad = await bare.run(bare.real.jobs.enqueue([NewJob("work", key=f"bad {b}") for b in BAD]))
    for result, change in zip(bad, BAD, strict=True):
        await bare.fetch(f"UPDATE tenure.job SET {change} WHERE id = {result.id}")
    await bare.run(bare.real.schema.migrate())

    rows = await bare.fetch("SELECT id FROM tenure.job ORDER BY id")
    assert [row["id"] for row in rows] == sorted(result.id for result in legal)
    rows = await bare.fetch("SELECT id, done_reason FROM tenure.job_failed ORDER BY id")
    assert [row["id"] for row in rows] == sorted(result.id for result in bad)
    assert {row["done_reason"] for row in rows} == {"unreadable"}
    # Only that of the job whose task was changed is still held: it is another task's key.
    held = await bare.fetch(
        "SELECT key FROM tenure.job_key WHERE expires_at IS NULL AND key LIKE 'bad%'"
    )
    assert [row["key"] for row in held] == ["bad task = ''"]
    rows = await bare.fetch("SELECT conname FROM pg_constraint WHERE NOT convalidated")
    assert rows == []


@pytest.mark.parametrize("change", BAD)
async def test_a_row_that_fails_a_check_is_refused(bare: Database, change: str) -> None:
    await bare.run(bare.real.schema.migrate())
    await bare.run(bare.real.jobs.enqueue([NewJob("work")]))
    with pytest.raises(psycopg.errors.CheckViolation):
        await bare.fetch(f"UPDATE tenure.job SET {change}")
