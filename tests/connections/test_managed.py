"""Managed PostgreSQL, emulated: Aurora, RDS Proxy, and products that only look like PostgreSQL."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import psycopg
import pytest

from support.managed import RDS_PROXY, Front
from tenure import Tenure
from tenure.config import DEFAULTS
from tenure.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.store import Database

JOBS = 1_000
FAST = DEFAULTS.scaled(0.1)
ENDED = "SELECT count(*), min(token) >> 40, max(token) >> 40 FROM tenure.job_archive"
# As Aurora answers with its default wal_level. A built-in function can only be hidden by another.
AURORA = """
CREATE FUNCTION pg_catalog.aurora_version() RETURNS text LANGUAGE sql AS $$SELECT '16.4.1'$$;
CREATE SCHEMA aurora;
CREATE FUNCTION aurora.pg_current_wal_lsn() RETURNS pg_lsn LANGUAGE plpgsql AS $$
BEGIN
    RAISE 'wal_level must be set to "logical"'
        USING ERRCODE = '55000', HINT = 'WAL control functions cannot be executed.';
END $$;
DO $$ BEGIN
    EXECUTE format('ALTER DATABASE %I SET search_path = aurora, pg_catalog', current_database());
END $$;
"""


@pytest.fixture
def aurora(db: Database) -> str:
    """The test's database, which tells no timeline."""
    with psycopg.connect(db.url, autocommit=True) as connection:
        connection.execute(AURORA)
    with (
        psycopg.connect(db.url, autocommit=True) as connection,
        pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState),
    ):
        connection.execute("SELECT pg_walfile_name(pg_current_wal_lsn())")
    return db.url


@pytest.fixture
def rds_proxy(db: Database) -> Iterator[Front]:
    """The test's database behind a proxy that refuses options."""
    with Front(db.url, refusal=RDS_PROXY) as front:
        yield front


async def completed(url: str) -> int:
    """How many of JOBS jobs a worker completes."""
    app = Tenure(url, defaults=FAST)

    @app.task(name="work")
    async def work(number: int) -> int:
        return number

    await app.aenqueue_many([work.bind(number) for number in range(JOBS)])
    count = low = high = 0
    async with app.run(concurrency=50, schedules=False), asyncio.timeout(60):
        while count < JOBS:
            await asyncio.sleep(0.2)
            with psycopg.connect(url) as connection:
                [(count, low, high)] = connection.execute(ENDED).fetchall()
    await app.aclose()
    # The timeline in the fencing token.
    assert (low, high) == (1, 1)
    return count


async def test_a_worker_completes_jobs_on_aurora(aurora: str) -> None:
    assert await completed(aurora) == JOBS


async def test_a_worker_completes_jobs_behind_rds_proxy(rds_proxy: Front) -> None:
    assert await completed(rds_proxy.url) == JOBS
    assert rds_proxy.refused


@pytest.mark.parametrize(
    ("statuses", "product"),
    [
        ({"crdb_version": "CockroachDB CCL v25.2.1"}, "CockroachDB"),
        ({"server_version": "15.2-YB-2025.1.0.0-b0"}, "YugabyteDB"),
        ({"server_version": "8.0.2"}, "Amazon Redshift"),
        ({"server_version": "14.1 (Spanner)"}, "Spanner"),
    ],
)
def test_another_product_is_refused_by_name(
    db: Database, statuses: dict[str, str], product: str
) -> None:
    with Front(db.url, statuses=statuses) as front:
        app = Tenure(front.url)
        with pytest.raises(ConfigError) as refused:
            app.admin.queues.list()
        app.close()
    assert product in str(refused.value)
    assert "PostgreSQL 15 or newer" in str(refused.value)
