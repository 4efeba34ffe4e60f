"""How a handler's end becomes an outcome: what it returned, raised, or was stopped for."""

import asyncio
import traceback
from datetime import timedelta

from tenure._model.outcome import (
    SUCCEEDED,
    Cancelled,
    Error,
    Failed,
    Outcome,
    Released,
    Snoozed,
    Succeeded,
)
from tenure._model.says import Cancel, Finished, GiveUp, Retry, Snooze, TargetReached
from tenure._rules import values
from tenure._rules.payload import MAX_RESULT, encode
from tenure._services.base import log
from tenure._services.holdings import Why
from tenure.errors import LeaseLost, PayloadError, Stopped
from tenure.task import Definition

_AFTER_A_LOSS = timedelta(seconds=1)
OUTAGE = Error("Outage", "stopped because its lease could not be renewed; given back")
DRAINED = Error("Drained", "stopped because its worker was shutting down; given back")


class Undecodable(PayloadError):
    """A job's arguments no longer fit its handler. The payload is kept."""


def returned(result: object) -> Outcome:
    """The outcome of a handler that returned."""
    if result is None:
        return SUCCEEDED
    try:
        if isinstance(result, Finished):
            return Succeeded(values.dump(result.result), result.reason)
        return Succeeded(values.dump(result))
    except Exception as error:  # noqa: BLE001 - a property of the user's object
        return Failed(_told(error), retryable=False, reason="unstorable")


def fit_to_send(outcome: Outcome) -> Outcome:
    """The outcome itself, or a failure in its place if its result is too large to be stored: the
    child could not even read it."""
    if isinstance(outcome, Succeeded) and outcome.result is not None:
        try:
            encode(outcome.result, limit=MAX_RESULT, what="the results")
        except PayloadError as error:
            return Failed(_told(error), retryable=False, reason="unstorable")
    return outcome


def raised(
    error: BaseException, task: Definition, why: Why | None, limit: timedelta | None
) -> Outcome:
    """The outcome of a handler that raised; after it was asked to stop, it was stopped."""
    try:
        return _judged(error, task, why, limit)
    except Exception as defect:  # noqa: BLE001 - no defect may keep a slot and a lease
        return unjudged(defect, task)


def unjudged(defect: Exception, task: Definition) -> Outcome:
    """The outcome where judging the end has failed itself: it is told, and tried again."""
    log.error("%s: an end could not be judged; the attempt failed", task.name, exc_info=defect)
    return Failed(_told(defect))


def _judged(
    error: BaseException, task: Definition, why: Why | None, limit: timedelta | None
) -> Outcome:
    match error:
        case Undecodable():
            return Failed(_told(error), retryable=False, reason="undecodable")
        case TargetReached():
            return Succeeded(reason="target_reached")
        case Cancel():
            return Cancelled(str(error) or "handler")
        case GiveUp():
            return Failed(_told(error), retryable=False)
        case Snooze(pause=pause):
            return Snoozed(pause)
        case Retry(after=after):
            return Failed(_told(error), after=after)
        case _ if why is not None:
            return stopped(why, limit)
        case LeaseLost():
            # If it is lost, this is refused; if it is not, the job must not spin.
            return Snoozed(_AFTER_A_LOSS)
        case asyncio.CancelledError() | Stopped():
            return Failed(Error(type(error).__name__, "cancelled, but not by the worker"))
        case _:
            return Failed(_told(error), retryable=not isinstance(error, task.give_up_on))


def stopped(why: Why, limit: timedelta | None) -> Outcome:
    """The outcome of a handler that ended because it was stopped."""
    match why:
        case Why.TIMEOUT:
            after = f"after {limit.total_seconds():g} s" if limit else "when its time was up"
            return Failed(Error("TimedOut", f"stopped {after}"), timed_out=True)
        case Why.CANCEL:
            return Cancelled()
        case Why.LEASE:
            return Released(error=OUTAGE)
        case Why.DRAIN:
            return Released(error=DRAINED)


def _told(error: BaseException) -> Error:
    """The error in words; an exception whose own words fail is told by its type."""
    kind = type(error).__qualname__
    try:
        return Error(kind, str(error), "".join(traceback.format_exception(error)))
    except Exception:  # noqa: BLE001 - a property of the user's exception
        return Error(kind, "its message could not be read")
