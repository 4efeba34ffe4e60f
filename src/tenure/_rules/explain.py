"""Explain in a sentence why a job isn't running. The first reason that applies is used."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from tenure._model.explanation import Explanation, ExplanationCode, JobContext, QueueContext
from tenure._model.ids import JobId
from tenure._model.job import State
from tenure._model.stats import Count
from tenure._rules.formatting import counted
from tenure._rules.liveness import is_paused, serving, unknown_tasks

# A few polls. A claim never locks a row this long.
PASSED_OVER_FOR = timedelta(seconds=5)


def nowhere(job_id: JobId) -> Explanation:
    """Explain that no job has this id."""
    return Explanation(
        job_id,
        ExplanationCode.UNKNOWN,
        f"Job {job_id} does not exist. It never existed, was deleted, or is past its retention.",
    )


def explain(facts: JobContext) -> Explanation:
    """Explain the job's current state."""
    job, around = facts.job, facts.around
    if around is None or not job.state.is_live:
        why = "" if job.done_reason is None else f" ({job.done_reason})"
        at = "" if job.ended_at is None else f" at {_at(job.ended_at)}"
        sentence = f"The job has ended: {job.state}{why}{at}."
        return Explanation(job.id, ExplanationCode.ENDED, sentence, reason=job.done_reason)
    if job.state is State.RUNNING:
        explanation = _running(facts, around)
        return replace(
            explanation, now=around.now, renewed_at=around.renewed_at, renewals=around.renewals
        )
    explanation = _kept(facts, around) or _shut(facts, around) or _waiting(facts, around)
    return replace(explanation, now=around.now)


def _running(facts: JobContext, around: QueueContext) -> Explanation:
    job, ends = facts.job, facts.job.lease_expires_at
    holder = next((w for w in facts.workers if w.id == job.claimed_by), None)
    by = str(job.claimed_by) if holder is None else holder.name
    if holder is not None and holder.host:
        by = f"{by} on {holder.host}"
    if ends is not None and ends > around.now:
        sentence = f"The job is running: {by} holds its lease until {_at(ends)}."
        return Explanation(job.id, ExplanationCode.RUNNING, sentence, until=ends, by=by)
    over = f"The lease of {by} has expired, and no worker has taken the job over yet"
    locked = around.locked
    if locked.pid is None:
        return Explanation(job.id, ExplanationCode.LEASE_OVER, f"{over}.", by=by)
    locker = f"pid {locked.pid} ({locked.application or 'unknown'})"
    since = "" if locked.since is None else f" since {_at(locked.since)}"
    sentence = f"{over}: {locker} has locked its row{since}. End that transaction."
    return Explanation(job.id, ExplanationCode.LEASE_OVER, sentence, by=locker)


def _kept(facts: JobContext, around: QueueContext) -> Explanation | None:
    """Reasons in the job itself: it is held or not due."""
    job = facts.job
    if job.held:
        row = facts.held_by
        if row is None:
            return Explanation(
                job.id, ExplanationCode.HELD, "The job has been held since it was enqueued."
            )
        sentence = f"The job is held by {row.actor} since {_at(row.at)}{_because(row.reason)}."
        return Explanation(job.id, ExplanationCode.HELD, sentence, by=row.actor, reason=row.reason)
    if job.run_at > around.now:
        sentence = f"The job is not due until {_at(job.run_at)}."
        return Explanation(job.id, ExplanationCode.NOT_DUE, sentence, until=job.run_at)
    return None


def _shut(facts: JobContext, around: QueueContext) -> Explanation | None:
    """Reasons set by an operator: a pause or a limit."""
    job = facts.job
    for code, what, row in (
        (ExplanationCode.ALL_PAUSED, "Every queue", facts.every_queue),
        (ExplanationCode.QUEUE_PAUSED, f"Queue {job.queue}", facts.queue),
    ):
        if row is not None and is_paused(row, around.now):
            until = "" if row.paused_until is None else f" until {_at(row.paused_until)}"
            sentence = f"{what} is paused by {row.paused_by}{until}{_because(row.paused_reason)}."
            return Explanation(
                job.id,
                code,
                sentence,
                until=row.paused_until,
                by=row.paused_by,
                reason=row.paused_reason,
            )
    for what, row, running in (
        ("in all queues", facts.every_queue, around.running_in_all),
        (f"in queue {job.queue}", facts.queue, around.running),
    ):
        if row is not None and row.max_running is not None and running >= row.max_running:
            jobs = f"{running} of {row.max_running} jobs"
            sentence = f"The concurrency limit is reached: {jobs} are running {what}."
            return Explanation(
                job.id, ExplanationCode.LIMIT_REACHED, sentence, count=Count(running)
            )
    return None


def _waiting(facts: JobContext, around: QueueContext) -> Explanation:
    """Reasons outside the job: no worker for it, a lock, or jobs ahead of it."""
    job = facts.job
    served = serving(facts.workers, job.queue)
    if not served:
        sentence = (
            f"No live worker serves queue {job.queue}. Run: tenure worker module:app -q {job.queue}"
        )
        return Explanation(job.id, ExplanationCode.NOT_SERVED, sentence)
    if all(job.task in unknown_tasks(worker) for worker in served):
        sentence = (
            f"No live worker of queue {job.queue} knows task {job.task}. "
            "Deploy the code that has it."
        )
        return Explanation(job.id, ExplanationCode.TASK_UNKNOWN, sentence)
    if (locked := _locked(facts, around)) is not None:
        return locked
    if around.ahead.value:
        jobs = counted(around.ahead, "due job is", "due jobs are")
        sentence = f"{jobs} ahead of it in queue {job.queue}."
        return Explanation(job.id, ExplanationCode.BEHIND, sentence, count=around.ahead)
    sentence = f"The job is next in queue {job.queue} and waits for a worker with a free slot."
    return Explanation(job.id, ExplanationCode.NEXT, sentence)


def _locked(facts: JobContext, around: QueueContext) -> Explanation | None:
    """Another transaction has locked the row for longer than a claim takes."""
    locked, due_for = around.locked, around.now - facts.job.run_at
    if locked.pid is None or due_for < PASSED_OVER_FOR:
        return None
    if locked.since is not None and around.now - locked.since < PASSED_OVER_FOR:
        return None
    locker = f"pid {locked.pid} ({locked.application or 'unknown'})"
    since = "" if locked.since is None else f" since {_at(locked.since)}"
    sentence = (
        f"The job is due, but {locker} has locked its row{since}. Workers skip it until that "
        "transaction ends."
    )
    return Explanation(facts.job.id, ExplanationCode.LOCKED, sentence, by=locker)


def _because(reason: str | None) -> str:
    return f": {reason}" if reason else ""


def _at(instant: datetime) -> str:
    return f"{instant.astimezone(UTC):%Y-%m-%d %H:%M:%S}Z"
