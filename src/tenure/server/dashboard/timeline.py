"""A job's timeline: enqueued, due, attempts, backoffs, and its current state."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from tenure.admin import State
from tenure.server.dashboard.filters import who
from tenure.server.schemas.installation import AuditOut, WorkerOut
from tenure.server.schemas.jobs import AttemptOut, JobOut

_GOOD = ("completed",)
_BAD = ("failed", "timed_out", "lost")


@dataclass(frozen=True, slots=True)
class TimelineStep:
    """One step. `tone` sets its color, and `attempt` is set if the step shows an attempt."""

    name: str
    at: datetime | None
    words: str = ""
    tone: str = ""
    attempt: AttemptOut | None = None
    seconds: float | None = None
    worker: str = ""


def steps(
    job: JobOut,
    attempts: Sequence[AttemptOut],
    enqueued: AuditOut | None,
    workers: Mapping[str, str],
) -> Iterator[TimelineStep]:
    """Yield the steps so far, oldest first."""
    by = "" if enqueued is None else f"by {who(enqueued.actor)}, {enqueued.source}"
    yield TimelineStep("Enqueued", job.created_at, by)
    yield TimelineStep("Due", attempts[0].due_at if attempts else job.run_at)
    before: AttemptOut | None = None
    for one in attempts:
        if before is not None:
            yield from _between(before, one.due_at)
        yield _attempt(one, workers)
        before = one
    yield from _now(job, before, workers)


def _between(before: AttemptOut, due_at: datetime) -> Iterator[TimelineStep]:
    waited = (due_at - before.ended_at).total_seconds()
    if waited > 0:
        yield TimelineStep("Backoff", due_at, "due again", seconds=waited)


def _attempt(one: AttemptOut, workers: Mapping[str, str]) -> TimelineStep:
    tone = "good-end" if one.outcome in _GOOD else "bad-end" if one.outcome in _BAD else ""
    return TimelineStep(
        f"Attempt {one.attempt}",
        one.started_at,
        one.outcome.replace("_", " "),
        tone,
        attempt=one,
        seconds=(one.ended_at - one.started_at).total_seconds(),
        worker=holder(one.worker, workers),
    )


def _now(
    job: JobOut, before: AttemptOut | None, workers: Mapping[str, str]
) -> Iterator[TimelineStep]:
    if job.state is State.QUEUED:
        if before is not None:
            yield from _between(before, job.run_at)
        yield TimelineStep("Held" if job.held else "Waiting", None, tone="now")
    elif job.state is State.RUNNING:
        yield TimelineStep(
            f"Attempt {job.attempt}",
            job.claimed_at,
            "running",
            "now",
            worker=holder(job.worker, workers),
        )
    else:
        tone = "good-end" if job.state is State.COMPLETED else "bad-end"
        tone = "" if job.state is State.CANCELLED else tone
        yield TimelineStep(job.state.value.capitalize(), job.ended_at, _ended(job), tone)


def _ended(job: JobOut) -> str:
    """Describe why the job ended. A handler may have given its own reason."""
    attempts = f"after {job.attempt} attempt{'' if job.attempt == 1 else 's'}"
    known = {
        "worker_done": "",
        "target_reached": "target reached",
        "no_more_results": "no more results",
        "attempts": attempts,
        "gave_up": "the handler gave up",
        "poison": "poison: its process or its worker died again and again",
        "lost": "lost, and the task has on_loss=fail",
        "unstorable": "the result cannot be stored",
        "unreadable": "the stored job cannot be read",
        "invalid_arguments": "the arguments do not fit the handler",
        "requested": "by an operator",
        "handler": "by the handler",
        "expired": "expired before it started",
        "revoked": "force-stopped by an operator",
    }
    reason = job.done_reason or ""
    return known.get(reason, reason.replace("_", " "))


def named(worker: WorkerOut) -> str:
    """Name a worker, with its host if known."""
    return f"{worker.name} on {worker.host}" if worker.host else worker.name


def holder(worker: str | None, workers: Mapping[str, str]) -> str:
    """Return the worker's name, or the start of its id if its name is no longer known."""
    if worker is None:
        return ""
    return workers.get(worker) or f"worker {worker[:8]}"
