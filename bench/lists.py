"""Lists, figures and pages over HTTP beside millions of rows: how long each takes a caller.

Rows are made by SQL: live jobs in every state, archived ones with their attempts, dead letters in
groups, a week of folded minutes, workers, operations and an audit.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.asking import Asking
from proof.via_http.server import Server as Serving
from tenure import Tenure
from tenure.admin import By
from tenure.types import Scope

if TYPE_CHECKING:
    from bench.report import Report
    from bench.server import Server

_BATCH = 500_000


@dataclass(frozen=True, slots=True)
class Rows:
    """How many of each."""

    live: int
    archived: int
    failed: int
    workers: int = 200


FULL = Rows(live=1_000_000, archived=10_000_000, failed=100_000)
SHORT = Rows(live=20_000, archived=50_000, failed=5_000)
# Twenty queues, fifty tasks; a hundredth of what is live runs, a tenth is held, half is for later.
_LIVE = """
INSERT INTO tenure.job (
    queue, task, args, priority, created_at, run_at, max_attempts, max_losses, held
)
SELECT 'q' || n %% 20, 't' || n %% 50, jsonb_build_object('n', n), n %% 10, now(),
    now() + (n %% 2 * 2 - 1) * (n %% 86400) * interval '1 s', 3, 3, n %% 10 = 0
FROM generate_series(1, %(count)s) AS n
"""
_RUN = """
UPDATE tenure.job AS j SET state = 'running', token = 1, attempt = 1, claimed_by = w.id,
    claimed_at = now(), renewed_at = now(), held = false,
    lease_expires_at = now() + interval '6 hours'
FROM (SELECT w.id FROM tenure.worker AS w LIMIT 1) AS w
WHERE j.id %% 100 = 1
"""
_ARCHIVE = """
WITH filed AS (
    INSERT INTO tenure.job_archive (
        id, token, run_at, created_at, claimed_at, lease_expires_at, ended_at, claimed_by, filed_on,
        items, priority, attempt, max_attempts, losses, state, queue, task, done_reason, args
    )
    SELECT nextval('tenure.job_id_seq'), 1, s.at, s.at, s.at, s.at, s.at, gen_random_uuid(),
        (now() AT TIME ZONE 'UTC')::date, 0, n %% 10, 1, 3, 0,
        CASE WHEN n %% 20 = 7 THEN 'cancelled' ELSE 'completed' END, 'q' || n %% 20, 't' || n %% 50,
        'worker_done', jsonb_build_object('n', n)
    FROM generate_series(1, %(count)s) AS n
    CROSS JOIN LATERAL (SELECT now() - (n %% 3600) * interval '1 s' AS at) AS s
    RETURNING id, token, run_at, claimed_at, ended_at, claimed_by, filed_on, queue, task
)
INSERT INTO tenure.attempt (
    job_id, token, due_at, started_at, ended_at, claimed_by, filed_on, renewals, attempt, late,
    outcome, queue, task
)
SELECT f.id, f.token, f.run_at, f.claimed_at, f.ended_at, f.claimed_by, f.filed_on, 0, 1, false,
    'completed', f.queue, f.task
FROM filed AS f
"""
_FAIL = """
INSERT INTO tenure.job_failed (
    id, token, run_at, created_at, claimed_at, lease_expires_at, ended_at, claimed_by, items,
    priority, attempt, max_attempts, losses, max_losses, queue, task, done_reason, error_type,
    error_message, error_signature, args
)
SELECT nextval('tenure.job_id_seq'), 1, s.at, s.at, s.at, s.at, s.at, gen_random_uuid(), 0, 5, 3, 3,
    0, 3, 'q' || n %% 20, 't' || n %% 50, 'attempts', 'Oops', 'no luck', 'Oops at line ' || n %% 40,
    '{}'
FROM generate_series(1, %(count)s) AS n
CROSS JOIN LATERAL (SELECT now() - (n %% 86400) * interval '1 s' AS at) AS s
"""
# A week of minutes: of all, of each queue, of each task.
_FOLD = """
INSERT INTO tenure.rollup_minute
SELECT m, c.queue, c.task, 100, 1, 0, 0, 0, 0, 0, 0, 50, 20, b.counts, b.counts
FROM generate_series(
    date_trunc('minute', now()) - interval '7 days', date_trunc('minute', now()), '1 minute'
) AS m
CROSS JOIN (
    SELECT '' AS queue, '' AS task
    UNION ALL SELECT 'q' || n, '' FROM generate_series(0, 19) AS n
    UNION ALL SELECT '', 't' || n FROM generate_series(0, 49) AS n
) AS c
CROSS JOIN (SELECT array_agg(5) AS counts FROM generate_series(1, 19)) AS b
"""
_FOLDED = """
INSERT INTO tenure.rollup_state (final_to, marked_to, counted_until, mark)
SELECT t, t, t, pg_current_xact_id() FROM date_trunc('minute', now() + interval '1 minute') AS t
ON CONFLICT (singleton) DO UPDATE SET final_to = excluded.final_to, marked_to = excluded.marked_to,
    counted_until = excluded.counted_until
"""
_WORKERS = """
INSERT INTO tenure.worker (
    id, name, host, pid, version, language, state, queues, slots, started_at, last_heartbeat_at
)
SELECT gen_random_uuid(), 'w' || n, 'h', n, '1', 'python', 'active', ARRAY['q' || n %% 20], 10,
    now(), now()
FROM generate_series(1, %(count)s) AS n
"""
_AUDIT = """
INSERT INTO tenure.audit (at, actor, source, action, target)
SELECT now(), 'ops', 'cli', 'pause', 'queue:q' || n %% 20 FROM generate_series(1, %(count)s) AS n
"""
_OPERATIONS = """
INSERT INTO tenure.operation (
    kind, state, filter, rate, total, done, actor, source, created_at, started_at, ended_at
)
SELECT 'retry', 'done', '{"state": "failed"}', 100, 10, 10, 'ops', 'cli', now(), now(), now()
FROM generate_series(1, %(count)s)
"""


def run(server: Server, report: Report) -> None:
    rows = SHORT if report.short else FULL
    url = server.database()
    report.title(f"Lists: {rows.live:,} live, {rows.archived:,} archived, {rows.failed:,} failed")
    began = time.perf_counter()
    job = _fill(server, url, rows)
    print(f"  (made in {time.perf_counter() - began:.0f} s)", flush=True)
    app = Tenure(url)
    secret = app.admin.tokens.create("bench", By("bench"), scopes=list(Scope)).secret
    app.close()
    with tempfile.TemporaryDirectory(prefix="tenure-bench-") as directory:
        serving = Serving(Path(directory) / "log", scaled=False)
        serving.start({"TENURE_DATABASE_URL": url})
        try:
            asking = Asking(serving, server.cluster.pid, secret, report)
            asking.questions(job)
            asking.pages(job)
            asking.tab(report.short)
        finally:
            serving.end()
    server.drop(url)


def _fill(server: Server, url: str, rows: Rows) -> int:
    with server.admin(url) as admin:
        admin.execute(_WORKERS, {"count": rows.workers})
        for name in range(20):
            admin.execute(
                "INSERT INTO tenure.queue (name, changed_at) VALUES (%s, now())", [f"q{name}"]
            )
        for start in range(0, rows.archived, _BATCH):
            admin.execute(_ARCHIVE, {"count": min(_BATCH, rows.archived - start)})
        admin.execute(_FAIL, {"count": rows.failed})
        # Last, so that theirs are the newest ids: a page of live jobs that finds none is quick.
        admin.execute(_LIVE, {"count": rows.live})
        admin.execute(_RUN.replace("%%", "%"))
        admin.execute(_FOLD)
        admin.execute(_FOLDED)
        for statement in (_AUDIT, _OPERATIONS):
            admin.execute(statement, {"count": 10_000})
        admin.execute("VACUUM ANALYZE")
        row: Any = admin.execute("SELECT min(id) FROM tenure.job WHERE state = 'queued'").fetchone()
        return int(row[0])
