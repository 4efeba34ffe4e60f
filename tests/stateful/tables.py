"""The store's tables as the machine looks at them, and how the model would fill them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.stateful.model import Job

EMPTY = """
TRUNCATE tenure.job, tenure.job_failed, tenure.job_archive, tenure.attempt, tenure.job_key,
    tenure.job_item, tenure.queue, tenure.audit
"""
LOOK = """
SELECT
    (SELECT json_agg(json_build_array(j.id, j.state, j.token, j.attempt, j.losses,
        j.worker_losses, j.deaths, j.max_losses, j.suspect, j.held, j.cancel_requested,
        j.claimed_by IS NOT NULL) ORDER BY j.id) FROM tenure.job AS j) AS live,
    (SELECT json_agg(json_build_array(f.id, 'failed', f.token, f.attempt, f.losses,
        f.worker_losses, f.deaths, f.max_losses, false, false, false, false) ORDER BY f.id)
     FROM tenure.job_failed AS f) AS failed,
    (SELECT json_agg(json_build_array(a.id, a.state, a.token, a.attempt) ORDER BY a.id)
     FROM tenure.job_archive AS a) AS archive,
    (SELECT json_agg(json_build_array(t.job_id, t.token, t.outcome) ORDER BY t.job_id, t.token)
     FROM tenure.attempt AS t) AS attempts,
    (SELECT json_agg(json_build_array(f.id, (SELECT json_agg(
        json_build_array(h.token, h.outcome) ORDER BY h.token)
        FROM jsonb_to_recordset(f.history) AS h (token bigint, outcome text))) ORDER BY f.id)
     FROM tenure.job_failed AS f) AS histories
"""


def seen(job: Job) -> list[Any]:
    """A row of `live` or `failed` as it should be."""
    running = job.state == "running"
    cancelled = job.cancelled and running
    held = job.held and job.state == "queued"
    counters = [job.losses, job.worker_losses, job.deaths, job.max_losses]
    suspect = job.suspect and job.state != "failed"
    known = [job.id, job.state, job.token, job.attempt, *counters]
    return [*known, suspect, held, cancelled, running]
