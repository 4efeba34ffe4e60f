"""The executor protocol, and the outcome of a return or an exception."""

import asyncio
import traceback
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any, Protocol

from tenure._hooks.middleware import Hooks, aaround, around
from tenure._model.job import JobRow
from tenure._model.outcome import (
    SUCCEEDED,
    Cancel,
    Cancelled,
    Failed,
    Finished,
    GiveUp,
    Outcome,
    Released,
    Retry,
    Snooze,
    Snoozed,
    Succeeded,
    TargetReached,
)
from tenure._rules import serialization
from tenure._rules.payload import MAX_RESULT, encode
from tenure._rules.sanitize import MAX_MESSAGE, MAX_TRACE
from tenure._runtime.held_leases import HeldLease, RunningHandler, StopReason
from tenure._runtime.log_capture import LogTail
from tenure._services.base import log
from tenure._store.engine import Engine
from tenure.errors import Error, LeaseLost, PayloadError, Stopped
from tenure.job import AsyncJob, Job, LeaseState
from tenure.task import Definition

_AFTER_A_LOSS = timedelta(seconds=1)
# More than is stored, so that a log shows more; but not without end. Hiding secrets in 5 MB takes
# seconds of the event loop, and the handlers on it would run out of time.
_LONGEST_MESSAGE = 2 * MAX_MESSAGE
_LONGEST_TRACE = 2 * MAX_TRACE
OUTAGE = Error("Outage", "stopped because its lease could not be renewed; given back")
DRAINED = Error("Drained", "stopped because its worker was shutting down; given back")


class InvalidArguments(PayloadError):
    """A job's arguments no longer fit its handler. The payload is kept."""


def outcome_of_return(result: object) -> Outcome:
    """The outcome of a handler that returned."""
    if result is None:
        return SUCCEEDED
    try:
        if isinstance(result, Finished):
            return Succeeded(serialization.dump(result.result), result.reason)
        return Succeeded(serialization.dump(result))
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


def outcome_of_exception(
    error: BaseException, task: Definition, why: StopReason | None, limit: timedelta | None
) -> Outcome:
    """The outcome of a handler that raised; after it was asked to stop, it was stopped."""
    try:
        return _judged(error, task, why, limit)
    except BaseException as defect:  # noqa: BLE001 - no defect may keep a slot and a lease
        return outcome_of_internal_error(defect, task)


def outcome_of_internal_error(defect: BaseException, task: Definition) -> Outcome:
    """The outcome where judging the end has failed itself: it is told, and tried again."""
    log.error("%s: an end could not be judged; the attempt failed", task.name, exc_info=defect)
    return Failed(_told(defect))


def _judged(
    error: BaseException, task: Definition, why: StopReason | None, limit: timedelta | None
) -> Outcome:
    match error:
        case InvalidArguments():
            return Failed(_told(error), retryable=False, reason="invalid_arguments")
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
            return outcome_of_stop(why, limit)
        case LeaseLost():
            # If it is lost, this is refused; if it is not, the job must not spin.
            return Snoozed(_AFTER_A_LOSS)
        case asyncio.CancelledError() | Stopped():
            return Failed(Error(type(error).__name__, "cancelled, but not by the worker"))
        case _:
            return Failed(_told(error), retryable=not isinstance(error, task.give_up_on))


def outcome_of_stop(why: StopReason, limit: timedelta | None) -> Outcome:
    """The outcome of a handler that ended because it was stopped."""
    match why:
        case StopReason.TIMEOUT:
            after = f"after {limit.total_seconds():g} s" if limit else "when its time was up"
            return Failed(Error("TimedOut", f"stopped {after}"), timed_out=True)
        case StopReason.CANCEL:
            return Cancelled()
        case StopReason.LEASE:
            return Released(error=OUTAGE)
        case StopReason.DRAIN:
            return Released(error=DRAINED)


def _told(error: BaseException) -> Error:
    """The error in words, cut; an exception whose own words fail is told by its type."""
    kind = "unknown"
    # Whatever is raised here: a SystemExit would end the thread or the loop that judges.
    try:
        kind = str(type(error).__qualname__)
        message = str(error)
        trace = "".join(traceback.format_exception(error))
    except BaseException:  # noqa: BLE001 - a property of the user's exception
        return Error(kind, "its message could not be read")
    return Error(kind, message[:_LONGEST_MESSAGE], _end_of(trace))


def _end_of(trace: str) -> str:
    """The end of a trace, from the beginning of a line on if there is one."""
    if len(trace) <= _LONGEST_TRACE:
        return trace
    end = trace[-_LONGEST_TRACE:]
    _, newline, whole_lines = end.partition("\n")
    return whole_lines if newline and whole_lines else end


OnFinished = Callable[[HeldLease, Outcome, str | None], None]


class Executor(Protocol):
    """One way to run handlers."""

    def start(self, held: HeldLease, on_finished: OnFinished) -> RunningHandler:
        """Begin to run the job's handler; its end is told on the event loop."""

    async def close(self) -> None:
        """Let go of threads or processes."""


class HandlerCall:
    """One call of a handler, ready to be made; InvalidArguments if its arguments do not fit."""

    __slots__ = (
        "_is_async", "_middleware", "excerpt", "function", "handle", "named", "positional"
    )  # fmt: skip

    def __init__(
        self, task: Definition, row: JobRow, lease_state: LeaseState, engine: Engine, hooks: Hooks
    ) -> None:
        try:
            positional, self.named = task.parameters.load(row.args)
        except PayloadError as error:
            raise InvalidArguments(str(error)) from error
        self.handle = (AsyncJob if task.is_async else Job)(row, lease_state, engine)
        self.positional = [self.handle, *positional] if task.takes_job else positional
        self.function = task.function
        self._is_async = task.is_async
        self._middleware = hooks.around(is_async=task.is_async)
        self.excerpt = LogTail(row)
        lease_state.log = self.excerpt.text

    def __call__(self) -> Any:
        """Call the handler, inside the middleware that goes around it."""
        if not self._middleware:
            return self.function(*self.positional, **self.named)
        call = partial(self.function, *self.positional, **self.named)
        return (aaround if self._is_async else around)(self._middleware, self.handle, call)
