"""The state machine of a job, how it settles, and its backoff."""

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import assert_never

from tenure._model.attempt import AttemptOutcome
from tenure._model.job import JobRow, State
from tenure._model.outcome import (
    COMPLETED,
    SUCCEEDED,
    Cancelled,
    Failed,
    Loss,
    Lost,
    Outcome,
    Released,
    Settlement,
    Snoozed,
    Succeeded,
)
from tenure.config import LONGEST_WAIT, Backoff

# Every move there is. A retry of a dead letter (failed -> queued) begins a new life.
MOVES: dict[State, frozenset[State]] = {
    State.QUEUED: frozenset({State.RUNNING, State.CANCELLED}),
    State.RUNNING: frozenset({State.QUEUED, State.COMPLETED, State.FAILED, State.CANCELLED}),
    State.COMPLETED: frozenset(),
    State.FAILED: frozenset({State.QUEUED}),
    State.CANCELLED: frozenset(),
}

EXPIRED = Cancelled("expired")
# Caps of the counters that no task sets (rule 8); `max_losses` is the task's.
MAX_WORKER_LOSSES = 10
MAX_DEATHS = 100
SUSPECT_FROM = 2
# A suspect with as many worker losses takes down more than its own process: it runs only where
# nothing else is held.
ALONE_FROM = 3
# A job that moves its cursor before it takes its worker down has its worker losses taken back.
# After as many deaths it runs alone all the same: its neighbors would pay for it 100 times.
ALONE_DEATHS = 20


def is_expired(job: JobRow) -> bool:
    """Whether a job that was claimed for its first attempt is no longer worth running. Both
    instants are the database's. One that was tried before goes on to its own end: expired, its
    failure would be seen by nobody."""
    limit = job.meta.get("expires_in") if job.meta else None
    if limit is None or job.claimed_at is None or job.attempt > 1 or job.deaths:
        return False
    return bool(job.claimed_at - job.created_at > timedelta(seconds=limit))


def settle(outcome: Outcome, *, attempt: int, limit: int, backoff: timedelta) -> Settlement:
    """Decide how an attempt ends. The store adds `after` to its own clock."""
    if outcome is SUCCEEDED:
        return COMPLETED
    match outcome:
        case Succeeded(result, reason):
            return Settlement(
                State.COMPLETED, AttemptOutcome.COMPLETED, reason=reason, result=result
            )
        case Snoozed(pause):
            return Settlement(
                State.QUEUED, AttemptOutcome.SNOOZED, after=_bounded(pause), charged=False
            )
        case Released(begun, error, after):
            return Settlement(
                State.QUEUED,
                AttemptOutcome.RELEASED,
                error=error,
                after=None if after is None else _bounded(after),
                charged=False,
                loss=Loss.BEGUN if begun else None,
            )
        case Lost(loss, error):
            return Settlement(
                State.QUEUED, AttemptOutcome.LOST, error=error, charged=False, loss=loss
            )
        case Cancelled(reason):
            return Settlement(State.CANCELLED, AttemptOutcome.CANCELLED, reason=reason)
        case Failed():
            ending = AttemptOutcome.TIMED_OUT if outcome.timed_out else AttemptOutcome.FAILED
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


@dataclass(frozen=True, slots=True)
class LossCounters:
    """What a job has been through since its last progress, and in its whole life (`deaths`)."""

    losses: int = 0
    worker_losses: int = 0
    deaths: int = 0

    def after(self, loss: Loss | None) -> "LossCounters":
        """The counters once this end is counted."""
        return LossCounters(
            self.losses + (loss is Loss.OWN),
            self.worker_losses + (loss is Loss.SHARED),
            self.deaths + (loss in (Loss.OWN, Loss.SHARED)),
        )

    def is_poison(self, max_losses: int) -> bool:
        """Whether one of the caps is reached."""
        return (
            self.losses >= max_losses
            or self.worker_losses >= MAX_WORKER_LOSSES
            or self.deaths >= MAX_DEATHS
        )


def verdict(
    settlement: Settlement,
    *,
    attempt: int,
    limit: int,
    counters: LossCounters,
    max_losses: int,
    cancelled: bool,
) -> tuple[State, str | None]:
    """Where a settle leads and why, given what the row says now.

    A completion that still comes is accepted; every other ending of a job whose cancel was
    requested ends as cancelled. A job that fails on loss (`max_losses` is 0) fails of every end
    of a begun attempt that its handler did not bring about; any other at a cap of its losses.
    """
    if settlement.state is State.COMPLETED:
        return State.COMPLETED, settlement.reason
    if cancelled and settlement.state is not State.CANCELLED:
        return State.CANCELLED, "requested"
    if settlement.loss is not None:
        if not max_losses:
            return State.FAILED, "lost"
        if settlement.loss is not Loss.BEGUN and counters.after(settlement.loss).is_poison(
            max_losses
        ):
            return State.FAILED, "poison"
    if settlement.state is State.QUEUED and settlement.charged and attempt >= limit:
        return State.FAILED, "attempts"
    return settlement.state, settlement.reason


def rescue(
    *, counters: LossCounters, max_losses: int, begun: bool, excused: bool, cancelled: bool
) -> tuple[State, str | None, LossCounters]:
    """Where a lease leads that ran out and that its holder did not give back.

    `begun` is False where the handler is not known to have begun: then only a death is counted.
    `excused` is True where the server could not have renewed it: then nothing is.
    """
    now = counters
    if not excused:
        now = counters.after(Loss.SHARED)
        if not begun:
            now = replace(counters, deaths=now.deaths)
    if cancelled:
        return State.CANCELLED, "requested", now
    if begun and not max_losses:
        return State.FAILED, "lost", now
    if now.worker_losses >= MAX_WORKER_LOSSES or now.deaths >= MAX_DEATHS:
        return State.FAILED, "poison", now
    return State.QUEUED, None, now


def becomes_suspect(counters: LossCounters, after: LossCounters) -> bool:
    """Whether a rescue makes a suspect: the first loss of a whole worker is nearly always a
    machine's, the second in a row without progress may be the job's. So may one of many."""
    if after.worker_losses == counters.worker_losses:
        return False
    return after.worker_losses >= SUSPECT_FROM or after.deaths >= ALONE_DEATHS


def runs_alone(suspect: JobRow, *, alone_from: int) -> bool:
    """Whether a suspect must be the only job of its process."""
    return suspect.worker_losses >= alone_from or suspect.deaths >= ALONE_DEATHS


def delay(policy: Backoff, *, attempt: int, chance: float) -> timedelta:
    """The wait after the `attempt`th failure; `chance` in [0, 1) draws the jitter.

    Doubling stops where it passes the cap, so that a high attempt overflows nothing.
    """
    doublings = min(max(attempt - 1, 0), 62)
    seconds = min(policy.cap.total_seconds(), policy.base.total_seconds() * 2**doublings)
    return timedelta(seconds=seconds * (1 + policy.jitter * chance))
