"""A job's life, step by step: enqueued, due, each attempt, what lay between, where it is now."""

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
    """One step. `tone` is how it went; `attempt` is the running period, where it is one."""

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
    """The steps so far, oldest first."""
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
        yield TimelineStep("Held" if job.held else "Waits", None, tone="now")
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
        why = (job.done_reason or "").replace("_", " ")
        yield TimelineStep(job.state.value.capitalize(), job.ended_at, why, tone)


def named(worker: WorkerOut) -> str:
    """A worker by its name, and its host where it says one."""
    return f"{worker.name} on {worker.host}" if worker.host else worker.name


def holder(worker: str | None, workers: Mapping[str, str]) -> str:
    """Who held it: by name as long as that is known, else by the beginning of the id."""
    if worker is None:
        return ""
    return workers.get(worker) or f"worker {worker[:8]}"
