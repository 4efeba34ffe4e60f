"""The queues of the comparison: each with its defaults, and with the settings that its
documentation names for getting jobs back sooner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A queue with its settings. `watched`: one more worker is there, which takes no jobs."""

    program: str
    name: str
    settings: str
    store: Literal["postgresql", "redis"] = "postgresql"
    way: str = ""
    watched: bool = False

    @property
    def key(self) -> str:
        """A name for files."""
        return f"{self.program}-{self.way or 'default'}"


_TEN = "ten jobs at a time"
_LATE = "task_acks_late, task_reject_on_worker_lost"

WAYS = (
    Way(program="tenure", name="Tenure", settings=f"defaults (lease 30 s), {_TEN}"),
    Way(
        program="procrastinate",
        name="Procrastinate",
        settings=f"defaults, concurrency=10, {_TEN}",
    ),
    Way(
        program="procrastinate",
        name="Procrastinate, with its task for stalled jobs",
        settings="as above, and the periodic task of its guide, every minute instead of every ten",
        way="documented",
    ),
    Way(
        program="pgqueuer",
        name="PgQueuer",
        settings="defaults (heartbeat_timeout 30 s, batch_size 10), no limit on jobs at a time",
    ),
    Way(
        program="chancy",
        name="Chancy",
        settings=f"defaults (process executor, its Recovery plugin), concurrency=10, {_TEN}",
    ),
    Way(
        program="saq",
        name="SAQ on PostgreSQL",
        settings=f"defaults (timeout 10 s, retries 1, sweep every 60 s), {_TEN}",
    ),
    Way(
        program="saq",
        name="SAQ on PostgreSQL, with a heartbeat and retries",
        settings="as above, and timeout=0, heartbeat=40, retries=3 for each job",
        way="documented",
        watched=True,
    ),
    Way(
        program="celery",
        name="Celery",
        settings=f"Redis, defaults (prefork, early acknowledgement), concurrency=10, {_TEN}",
        store="redis",
    ),
    Way(
        program="celery",
        name="Celery, acknowledging late",
        settings=f"as above, and {_LATE}",
        store="redis",
        way="late",
    ),
    Way(
        program="celery",
        name="Celery, acknowledging late, short visibility timeout",
        settings=f"as above, and {_LATE}, visibility_timeout 30 s (default: 1 h)",
        store="redis",
        way="documented",
    ),
    Way(
        program="dramatiq",
        name="Dramatiq",
        settings=f"Redis, defaults (heartbeat_timeout 60 s), 1 process, 10 threads, {_TEN}",
        store="redis",
    ),
    Way(
        program="rq",
        name="RQ",
        settings="defaults, four `rq worker`, one job at a time each",
        store="redis",
    ),
    Way(
        program="rq",
        name="RQ, with retries",
        settings="as above, and Retry(max=3), --maintenance-interval 30 (default: 600)",
        store="redis",
        way="documented",
    ),
    Way(
        program="arq",
        name="arq",
        settings=f"defaults (job_timeout 300 s, max_tries 5, max_jobs 10), {_TEN}",
        store="redis",
    ),
    Way(
        program="arq",
        name="arq, with a short timeout",
        settings="as above, and job_timeout=30",
        store="redis",
        way="documented",
    ),
)
# Those whose defaults bring a job back within half a minute.
QUICK = ("tenure", "pgqueuer")
