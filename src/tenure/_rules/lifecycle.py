"""A job's state machine: transitions, settlement, losses, backoff."""

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

# All transitions. Retrying a dead letter (failed -> queued) resets its counters.
MOVES: dict[State, frozenset[State]] = {
    State.QUEUED: frozenset({State.RUNNING, State.CANCELLED}),
    State.RUNNING: frozenset({State.QUEUED, State.COMPLETED, State.FAILED, State.CANCELLED}),
    State.COMPLETED: frozenset(),
    State.FAILED: frozenset({State.QUEUED}),
    State.CANCELLED: frozenset(),
}

EXPIRED = Cancelled("expired")
# Limits for counters that tasks don't set themselves (rule 8). Only `max_losses` comes from the
# task.
MAX_WORKER_LOSSES = 10
MAX_DEATHS = 100
SUSPECT_FROM = 2
# A suspect with this many worker losses takes down more than its own process, so it runs only where
# nothing else is held.
ALONE_FROM = 3
# Moving its cursor resets a job's worker losses, even if the job then takes down its worker. After
# this many deaths, it runs alone anyway, because it could otherwise take its neighbors down 100
# times.
ALONE_DEATHS = 20


def is_expired(job: JobRow) -> bool:
    """Return whether a job claimed for its first attempt has expired, by the database's clock."""
    limit = job.meta.get("expires_in") if job.meta else None
    if limit is None or job.claimed_at is None or job.attempt > 1 or job.deaths:
        return False
    return bool(job.claimed_at - job.created_at > timedelta(seconds=limit))


def settle(outcome: Outcome, *, attempt: int, limit: int, backoff: timedelta) -> Settlement:
    """Decide how an attempt ends. The store adds `after` to its own clock."""
    if outcome is SUCCEEDED:
        return COMPLETED
    match outcome:
        case Succeeded(result, reason, report):
            return Settlement(
                State.COMPLETED,
                AttemptOutcome.COMPLETED,
                reason=reason,
                result=result,
                report=report,
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
    return min(max(wait, timedelta(0)), LONGEST_WAIT)


@dataclass(frozen=True, slots=True)
class LossCounters:
    """Losses since the job's last progress, and deaths over its whole life."""

    losses: int = 0
    worker_losses: int = 0
    deaths: int = 0

    def after(self, loss: Loss | None) -> "LossCounters":
        return LossCounters(
            self.losses + (loss is Loss.OWN),
            self.worker_losses + (loss is Loss.SHARED),
            self.deaths + (loss in (Loss.OWN, Loss.SHARED)),
        )

    def is_poison(self, max_losses: int) -> bool:
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
    """Return the job's next state and the reason, given its row.

    A completion is always accepted. If a cancel was requested, any other outcome cancels the job.
    If `max_losses` is 0, losing an attempt that had started fails the job. Otherwise, the job fails
    when its losses reach the limit.
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
    """Return the state, reason and counters of a job whose lease expired without being released.

    If the handler hadn't `begun`, only a death is counted. If the rescue is `excused`, because
    leases couldn't be renewed while the server was unavailable, nothing is counted.
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
    """Return whether a rescue makes the job a suspect. A second worker loss in a row does."""
    if after.worker_losses == counters.worker_losses:
        return False
    return after.worker_losses >= SUSPECT_FROM or after.deaths >= ALONE_DEATHS


def runs_alone(suspect: JobRow, *, alone_from: int) -> bool:
    """Return whether a suspect must be the only job in its process."""
    return suspect.worker_losses >= alone_from or suspect.deaths >= ALONE_DEATHS


def delay(policy: Backoff, *, attempt: int, chance: float) -> timedelta:
    """Return the wait after failure number `attempt`. `chance` in [0, 1) sets the jitter."""
    doublings = min(max(attempt - 1, 0), 62)
    seconds = min(policy.cap.total_seconds(), policy.base.total_seconds() * 2**doublings)
    return timedelta(seconds=seconds * (1 + policy.jitter * chance))
