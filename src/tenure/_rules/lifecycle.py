"""How a job goes from state to state. What the store enforces in SQL is said here in Python."""

from datetime import timedelta
from typing import assert_never

from tenure._model.ending import Ending
from tenure._model.job import JobRow, State
from tenure._model.outcome import (
    COMPLETED,
    SUCCEEDED,
    Cancelled,
    Failed,
    Outcome,
    Released,
    Settlement,
    Snoozed,
    Succeeded,
)
from tenure.config import LONGEST_WAIT

# Every move there is. A retry of a dead letter (failed -> queued) begins a new life.
MOVES: dict[State, frozenset[State]] = {
    State.QUEUED: frozenset({State.RUNNING, State.CANCELLED}),
    State.RUNNING: frozenset({State.QUEUED, State.COMPLETED, State.FAILED, State.CANCELLED}),
    State.COMPLETED: frozenset(),
    State.FAILED: frozenset({State.QUEUED}),
    State.CANCELLED: frozenset(),
}

EXPIRED = Cancelled("expired")


def is_expired(job: JobRow) -> bool:
    """Whether a job that was claimed for its first attempt is no longer worth running. Both
    instants are the database's. One that was tried before goes on to its own end: expired, its
    failure would be seen by nobody."""
    limit = job.meta.get("expires_in") if job.meta else None
    if limit is None or job.claimed_at is None or job.attempt > 1 or job.losses:
        return False
    return bool(job.claimed_at - job.created_at > timedelta(seconds=limit))


def settle(outcome: Outcome, *, attempt: int, limit: int, backoff: timedelta) -> Settlement:
    """Decide how an attempt ends. The store adds `after` to its own clock."""
    if outcome is SUCCEEDED:
        return COMPLETED
    match outcome:
        case Succeeded(result, reason):
            return Settlement(State.COMPLETED, Ending.COMPLETED, reason=reason, result=result)
        case Snoozed(pause):
            return Settlement(State.QUEUED, Ending.SNOOZED, after=_bounded(pause), charged=False)
        case Released():
            return Settlement(State.QUEUED, Ending.RELEASED, charged=False)
        case Cancelled(reason):
            return Settlement(State.CANCELLED, Ending.CANCELLED, reason=reason)
        case Failed():
            ending = Ending.TIMED_OUT if outcome.timed_out else Ending.FAILED
            if outcome.retryable and attempt < limit:
                after = backoff if outcome.after is None else outcome.after
                return Settlement(State.QUEUED, ending, error=outcome.error, after=_bounded(after))
            reason = "attempts" if outcome.retryable else outcome.reason
            return Settlement(State.FAILED, ending, reason=reason, error=outcome.error)
        case _:
            assert_never(outcome)


def _bounded(wait: timedelta) -> timedelta:
    """A wait that begins now at the earliest and ends within the calendar."""
    return min(max(wait, timedelta(0)), LONGEST_WAIT)


def verdict(asked: State, *, charged: bool, attempt: int, limit: int, cancelled: bool) -> State:
    """Where a settle leads, given what the row says now.

    A completion that still comes is accepted; every other ending of a job whose cancel was
    requested ends as cancelled; an attempt that stays charged at the cap ends as failed.
    """
    if asked is State.COMPLETED:
        return State.COMPLETED
    if cancelled:
        return State.CANCELLED
    if asked is State.QUEUED and charged and attempt >= limit:
        return State.FAILED
    return asked


def rescue(
    *, attempt: int, limit: int, losses: int, max_losses: int, cancelled: bool
) -> tuple[State, str | None]:
    """Where a lost lease leads, with `losses` counting this one; poison wins over lost."""
    if cancelled:
        return State.CANCELLED, "requested"
    if losses >= max_losses:
        return State.FAILED, "poison"
    if attempt >= limit:
        return State.FAILED, "lost"
    return State.QUEUED, None
