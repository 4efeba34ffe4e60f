"""Databases to explain statements in: one without statistics, and full ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
import pytest

from support.store import install
from tenure._model.audit import By
from tenure._store.postgres.sessions import Session
from tenure._store.postgres.store import PostgresStore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.databases import Databases

# Queued rows of four queues: due and for later, a few given back, a few held.
_QUEUED = """
INSERT INTO tenure.job (id, run_at, created_at, priority, max_attempts, max_losses,
    returned, held, queue, task, key, args)
SELECT n, now() + (n - {due}) * interval '1 second', now(), n % 10, 3, 3, n % 500 = 0, n % 997 = 0,
    (ARRAY['mail', 'bulk', 'report', 'sync'])[1 + n % 4], 'send',
    CASE WHEN n % 4 = 0 THEN 'key-' || n END, '{{"to": 1}}'
FROM generate_series(1, {queued}) AS n
"""
# Running rows, one in ten of a limited queue, one in a hundred over.
_RUNNING = """
INSERT INTO tenure.job (id, token, run_at, created_at, claimed_at, renewed_at, lease_expires_at,
    claimed_by, priority, attempt, max_attempts, max_losses, limited, state, queue, task, key, args)
SELECT {queued} + n, 1::bigint << 40, now(), now(), now(), now(),
    now() + CASE WHEN n % 100 = 0 THEN -1 ELSE 30 END * interval '1 second',
    '00000000-0000-0000-0000-000000000007', n % 10, 1, 3, 3, n % 10 = 0, 'running', 'mail', 'send',
    CASE WHEN n % 4 = 0 THEN 'running-' || n END, '{{}}'
FROM generate_series(1, {running}) AS n
"""
_HISTORY = """
INSERT INTO tenure.job_archive (id, token, run_at, created_at, claimed_at, ended_at, filed_on,
    items, priority, attempt, max_attempts, losses, state, queue, task, done_reason, args)
SELECT 1000000 + n, 1::bigint << 40, now(), now(), now(), now(),
    (now() AT TIME ZONE 'UTC')::date + n % 3, n % 20, 5, 1, 3, 0, 'completed', 'mail', 'send',
    'worker_done', '{{}}'
FROM generate_series(1, {archived}) AS n;
INSERT INTO tenure.attempt (job_id, token, due_at, started_at, ended_at, claimed_by, filed_on,
    renewals, attempt, late, outcome, queue, task)
SELECT 1000000 + n, 1::bigint << 40, now(), now(), now(), '00000000-0000-0000-0000-000000000007',
    (now() AT TIME ZONE 'UTC')::date + n % 3, 0, 1, false, 'completed', 'mail', 'send'
FROM generate_series(1, {archived}) AS n;
INSERT INTO tenure.job_failed (id, token, run_at, created_at, ended_at, items, priority, attempt,
    max_attempts, losses, max_losses, queue, task, done_reason, error_signature, args)
SELECT 2000000 + n, 1, now(), now(), now() - n * interval '10 minutes', 0, 5, 3, 3, 0, 3,
    'mail', CASE WHEN n % 50 = 0 THEN 'send' ELSE 'fetch' END, 'attempts', 'E' || n % 7, '{{}}'
FROM generate_series(1, {archived} / 4) AS n;
INSERT INTO tenure.job_item (job_id, key, data)
SELECT 1000000 + n % 500, 'item-' || n, '1' FROM generate_series(1, {archived}) AS n;
INSERT INTO tenure.job_key (task, key, job_id, expires_at)
SELECT j.task, j.key, j.id, NULL FROM tenure.job AS j WHERE j.key IS NOT NULL
UNION ALL
SELECT 'send', 'old-' || n, 1000000 + n, now() + (n - 500) * interval '1 minute'
FROM generate_series(1, {archived} / 4) AS n;
INSERT INTO tenure.audit (at, actor, source, action, target)
SELECT now(), 'ada', 'cli', 'cancel', 'job:' || n % 3000 FROM generate_series(1, 10000) AS n;
INSERT INTO tenure.schedule (name, every, timezone, task, queue, args, priority, missed,
    missed_within, missed_limit, overlap, jitter, program, next_at, created_at, changed_at)
SELECT 's-' || n, '1 minute', 'UTC', 'send', 'mail', '{{}}', 5, 'latest', '1 day', 100, 'allow',
    '0', 'program-' || n % 50, now() + (n - 100) * interval '1 second', now(), now()
FROM generate_series(1, 5000) AS n;
INSERT INTO tenure.schedule_tick (schedule, fire_at, recorded_at, outcome, reason)
SELECT 's-' || n % 100, now() - n * interval '10 minutes', now(), 'skipped', 'missed'
FROM generate_series(1, {archived}) AS n;
INSERT INTO tenure.operation (kind, state, filter, rate, total, done, actor, source, created_at,
    started_at, ended_at, next_at)
SELECT 'retry', CASE WHEN n > 290 THEN 'running' ELSE 'done' END, '{{}}', 500, 1000,
    CASE WHEN n > 290 THEN 0 ELSE 1000 END, 'ada', 'cli', now(), now(),
    CASE WHEN n <= 290 THEN now() - n * interval '3 hours' END,
    CASE WHEN n > 290 THEN now() + (n - 295) * interval '1 second' END
FROM generate_series(1, 300) AS n;
INSERT INTO tenure.operation_item (operation_id, place, job_id)
SELECT 1 + n % 300, 1 + n / 300, 2000000 + n FROM generate_series(1, {archived}) AS n;
INSERT INTO tenure.api_token (name, hint, hash, scopes, queues, created_at, created_by)
SELECT 'n' || n, 'tnr_0000', sha256(n::text::bytea), '{{read}}', '{{*}}', now(), 'ada'
FROM generate_series(1, 5000) AS n;
INSERT INTO tenure.dashboard_session
    (hash, name, provider, token_id, created_at, seen_at, expires_at, idle)
SELECT sha256(n::text::bytea), 'n', 'token', n % 5000, now(), now(),
    now() + n * interval '1 minute', interval '1 hour'
FROM generate_series(1, 5000) AS n;
INSERT INTO tenure.sign_in_code (hash, token_id, created_at, expires_at)
SELECT sha256(n::text::bytea), n, now(), now() + n * interval '1 minute'
FROM generate_series(1, 2000) AS n;
INSERT INTO tenure.idempotency (actor, key, digest, answer, created_at)
SELECT 'ada', 'key-' || n, 'ab', '[]', now() - n * interval '1 minute'
FROM generate_series(1, 10000) AS n;
INSERT INTO tenure.rollup_minute
SELECT date_bin('1 minute', now(), 'epoch') - n % 1440 * interval '1 minute', 'mail',
    'task-' || n / 1440, 5, 1, 0, 0, 0, 0, 0, 0, 1.5, 3, array_fill(1, ARRAY[19]),
    array_fill(1, ARRAY[19])
FROM generate_series(0, {archived} - 1) AS n;
SELECT setval('tenure.job_id_seq', 3000000)
"""


def fill(url: str, *, queued: int, running: int, archived: int) -> None:
    """Install the schema, fill it, and give the planner its statistics."""
    install(url)
    counts = {"queued": queued, "due": queued // 2, "running": running, "archived": archived}
    with psycopg.connect(url, autocommit=True) as connection:
        for text in (_QUEUED, _RUNNING, _HISTORY):
            connection.execute(text.format(**counts).encode())
        operator, store = Session(connection), PostgresStore()
        operator.run(store.queues.limit("mail", 50, By("ada")))
        operator.run(store.settings.set("lease", 30, By("ada")))
        connection.execute("VACUUM ANALYZE")


@pytest.fixture(scope="session")
def empty(databases: Databases) -> Iterator[str]:
    """A database as it is on the first day: no row, no statistics."""
    url = databases.create(databases.template("tenure", install))
    yield url
    databases.drop(url)


@pytest.fixture(scope="session")
def full(databases: Databases) -> Iterator[str]:
    """A database in use: 20,000 queued, 2,000 running, 20,000 archived."""
    name = databases.template(
        "tenure_full", lambda url: fill(url, queued=20_000, running=2_000, archived=20_000)
    )
    url = databases.create(name)
    yield url
    databases.drop(url)


@pytest.fixture(scope="session")
def emptied(databases: Databases) -> Iterator[str]:
    """A database whose statistics were taken at a moment without a live job.

    Its indexes are long and full of what is dead; the planner believes in one row.
    """
    name = databases.template(
        "tenure_full", lambda url: fill(url, queued=20_000, running=2_000, archived=20_000)
    )
    url = databases.create(name)
    with psycopg.connect(url, autocommit=True) as connection:
        for table in ("job", "job_failed", "job_key"):
            # Nothing clears the indexes of it before they are asked about.
            off = f"ALTER TABLE tenure.{table} SET (autovacuum_enabled = off)"
            connection.execute(off.encode())
            connection.execute(f"DELETE FROM tenure.{table}".encode())
        connection.execute("ANALYZE")
    yield url
    databases.drop(url)


@pytest.fixture(scope="session", params=[1, 10, 100])
def believed(databases: Databases, request: pytest.FixtureRequest) -> Iterator[str]:
    """A database in use, of whose tables the planner believes that each has no more rows than so.

    So it is where they were analysed in a quiet hour and have been filled since: new rows take the
    places of deleted ones, and nothing about the table grows.
    """
    name = databases.template(
        "tenure_full", lambda url: fill(url, queued=20_000, running=2_000, archived=20_000)
    )
    url = databases.create(name)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "UPDATE pg_class SET reltuples = %(rows)s "
            "WHERE relnamespace = 'tenure'::regnamespace AND reltuples > %(rows)s",
            {"rows": request.param},
        )
    yield url
    databases.drop(url)


@pytest.fixture(scope="session")
def large(databases: Databases) -> Iterator[str]:
    """A database with 100,000 queued jobs, for callers with settings of their own."""
    name = databases.template(
        "tenure_large", lambda url: fill(url, queued=100_000, running=5_000, archived=20_000)
    )
    url = databases.create(name)
    yield url
    databases.drop(url)


@pytest.fixture(scope="session")
def huge(databases: Databases, large: str) -> Iterator[str]:
    """The large database, believed by the planner to hold a hundred times as much."""
    url = databases.create("tenure_large")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "UPDATE pg_class SET reltuples = reltuples * 100 "
            "WHERE relnamespace = 'tenure'::regnamespace AND reltuples > 1000"
        )
    yield url
    databases.drop(url)
