"""The executor protocol, and the outcome of a handler that returned or raised."""

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
from tenure._rules.sealing import SEALED_KEY
from tenure._runtime.held_leases import HeldLease, RunningHandler, StopReason
from tenure._runtime.log_capture import LogTail
from tenure._services.base import log
from tenure._store.engine import Engine
from tenure.errors import Error, LeaseLost, PayloadError, Stopped
from tenure.job import AsyncJob, Job, LeaseState
from tenure.task import Definition

_AFTER_A_LOSS = timedelta(seconds=1)
# This is more than is stored, so that logs can show more. It is still limited, because redacting 5
# MB would block the event loop for seconds and its handlers would time out.
_LONGEST_MESSAGE = 2 * MAX_MESSAGE
_LONGEST_TRACE = 2 * MAX_TRACE
OUTAGE = Error("Outage", "stopped because its lease could not be renewed")
DRAINED = Error("Drained", "stopped because its worker was shutting down")


class InvalidArguments(PayloadError):
    """The job's arguments don't fit its handler. The payload is kept."""


def outcome_of_return(result: object) -> Outcome:
    if result is None:
        return SUCCEEDED
    try:
        if isinstance(result, Finished):
            return Succeeded(serialization.dump(result.result), result.reason, result.report)
        return Succeeded(serialization.dump(result))
    except Exception as error:  # noqa: BLE001 - a property of the user's object
        return Failed(_describe(error), retryable=False, reason="unstorable")


def fit_to_send(outcome: Outcome) -> Outcome:
    """Return the outcome, or a failure if its result is too large to send to the child."""
    if isinstance(outcome, Succeeded) and outcome.result is not None:
        try:
            encode(outcome.result, limit=MAX_RESULT, what="the results")
        except PayloadError as error:
            return Failed(_describe(error), retryable=False, reason="unstorable")
    return outcome


def outcome_of_exception(
    error: BaseException, task: Definition, why: StopReason | None, limit: timedelta | None
) -> Outcome:
    try:
        return _judged(error, task, why, limit)
    except BaseException as defect:  # noqa: BLE001 - a defect must not keep a slot and a lease
        return outcome_of_internal_error(defect, task)


def outcome_of_internal_error(defect: BaseException, task: Definition) -> Outcome:
    """Log an internal error and return a failure that is retried."""
    log.error(
        "task %s: could not determine the outcome, attempt failed", task.name, exc_info=defect
    )
    return Failed(_describe(defect))


def _judged(
    error: BaseException, task: Definition, why: StopReason | None, limit: timedelta | None
) -> Outcome:
    match error:
        case InvalidArguments():
            return Failed(_describe(error), retryable=False, reason="invalid_arguments")
        case TargetReached():
            return Succeeded(reason="target_reached")
        case Cancel():
            return Cancelled(str(error) or "handler")
        case GiveUp():
            return Failed(_describe(error), retryable=False)
        case Snooze(pause=pause):
            return Snoozed(pause)
        case Retry(after=after):
            return Failed(_describe(error), after=after)
        case _ if why is not None:
            return outcome_of_stop(why, limit)
        case LeaseLost():
            # If the lease is really lost, the store rejects this. Otherwise, it keeps the job from
            # being retried in a tight loop.
            return Snoozed(_AFTER_A_LOSS)
        case asyncio.CancelledError() | Stopped():
            return Failed(Error(type(error).__name__, "cancelled, but not by the worker"))
        case _:
            return Failed(_describe(error), retryable=not isinstance(error, task.give_up_on))


def outcome_of_stop(why: StopReason, limit: timedelta | None) -> Outcome:
    match why:
        case StopReason.TIMEOUT:
            after = f"after {limit.total_seconds():g} s" if limit else "at its timeout"
            return Failed(Error("TimedOut", f"stopped {after}"), timed_out=True)
        case StopReason.CANCEL:
            return Cancelled()
        case StopReason.LEASE:
            return Released(error=OUTAGE)
        case StopReason.DRAIN:
            return Released(error=DRAINED)


def _describe(error: BaseException) -> Error:
    """Describe an exception within limits. If its message can't be read, use only its type."""
    kind = "unknown"
    # Catch everything: a SystemExit would end this thread or loop.
    try:
        kind = str(type(error).__qualname__)
        message = str(error)
        trace = "".join(traceback.format_exception(error))
    except BaseException:  # noqa: BLE001 - a property of the user's exception
        return Error(kind, "its message could not be read")
    return Error(kind, message[:_LONGEST_MESSAGE], _end_of(trace))


def _end_of(trace: str) -> str:
    """Return the end of a traceback, starting at a line break if possible."""
    if len(trace) <= _LONGEST_TRACE:
        return trace
    end = trace[-_LONGEST_TRACE:]
    _, newline, whole_lines = end.partition("\n")
    return whole_lines if newline and whole_lines else end


OnFinished = Callable[[HeldLease, Outcome, str | None], None]


class Executor(Protocol):
    """Runs handlers on the loop, in threads or in processes."""

    def start(self, held: HeldLease, on_finished: OnFinished) -> RunningHandler:
        """Start the job's handler; `on_finished` is called on the event loop."""

    async def close(self) -> None:
        """Release threads or processes."""


class HandlerCall:
    """One call to a handler. Raises InvalidArguments if the arguments don't fit."""

    __slots__ = (
        "_is_async", "_middleware", "excerpt", "function", "handle", "named", "positional"
    )  # fmt: skip

    def __init__(
        self, task: Definition, row: JobRow, lease_state: LeaseState, engine: Engine, hooks: Hooks
    ) -> None:
        if row.cursor is not None or (isinstance(row.args, dict) and SEALED_KEY in row.args):
            row = engine.sealing.open_claimed(row)
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
        lease_state.show_output = self.excerpt.show_output

    def __call__(self) -> Any:
        if not self._middleware:
            return self.function(*self.positional, **self.named)
        call = partial(self.function, *self.positional, **self.named)
        return (aaround if self._is_async else around)(self._middleware, self.handle, call)
