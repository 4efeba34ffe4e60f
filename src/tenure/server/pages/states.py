"""How the state of a job is shown: by what it means to who looks, not by where its row is."""

from datetime import UTC, datetime

from tenure.admin import State
from tenure.server.shapes.jobs import JobOut


def shown_as(job: JobOut, now: datetime | None = None) -> str:
    """The word that stands beside the icon."""
    now = now or datetime.now(UTC)
    if job.state is State.RUNNING:
        over = job.lease_expires_at is not None and job.lease_expires_at <= now
        return "expired" if over else "running"
    if job.state is not State.QUEUED:
        return job.state.value
    if job.held:
        return "held"
    if job.attempt or job.deaths:
        return "retrying"
    return "scheduled" if job.run_at > now else "queued"
