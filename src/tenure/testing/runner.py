"""Run one claimed job in this thread, with the worker's dispatcher and settler.

The handler has a real lease, and its outcome is settled by the worker's rules. Time limits, cancel
requests during the run, and `process=True` aren't enforced here.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import suppress
from contextvars import Context
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, TypeVar
from uuid import UUID

from tenure._clock import boottime
from tenure._hooks.middleware import Hooks
from tenure._model.ids import WorkerId
from tenure._model.job import JobRow, State
from tenure._model.lease import ClaimResult
from tenure._model.outcome import Failed, Outcome, Released, Snoozed, Succeeded
from tenure._runtime import execution, log_capture
from tenure._runtime.dispatcher import Dispatcher, Executors, WorkerSettings
from tenure._runtime.events import EventEmitter, RuntimeEvents
from tenure._runtime.execution import HandlerCall, OnFinished
from tenure._runtime.held_leases import HeldLease, HeldLeases, StopReason
from tenure._runtime.settler import Settler
from tenure._store.engine import Engine
from tenure._store.steps import Op
from tenure.app import Tenure
from tenure.errors import Error, InvalidValue, PayloadError, Unreachable
from tenure.job import CURRENT

T = TypeVar("T")


class DirectConnection:
    """A connection for the settler that uses the app's own connections."""

    def __init__(self, engine: Engine, *, is_async: bool) -> None:
        self._engine = engine
        self._is_async = is_async

    async def run(self, op: Op[T]) -> T:
        """Run an operation. In sync code it never suspends."""
        return await self._engine.arun(op) if self._is_async else self._engine.run(op)

    def set_deadline(self, deadline: timedelta) -> None:
        """Do nothing: no lease is renewed here."""

    async def open(self) -> None:
        """Do nothing."""

    async def close(self) -> None:
        """Do nothing."""

    def listen(self, channel: str, *, anyway: bool = False) -> AsyncIterator[str]:
        """Raise an error: nothing listens for wakeups here."""
        raise NotImplementedError(channel)


class InlineExecutor:
    """Runs a handler in the caller's thread, or on its loop."""

    def __init__(self, engine: Engine, hooks: Hooks, *, is_async: bool) -> None:
        self._engine = engine
        self._hooks = hooks
        self._is_async = is_async
        self._tasks: set[asyncio.Task[None]] = set()
        self.ended: tuple[Outcome, BaseException | None] = (Released(), None)

    def start(self, held: HeldLease, on_finished: OnFinished) -> "InlineExecutor":
        """Run the handler until it ends, or start it on a loop."""
        # A fresh context, as in a worker: the handler must not see the test's context variables.
        if self._is_async:
            task = asyncio.get_running_loop().create_task(
                self._arun(held, on_finished), context=Context()
            )
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        else:
            Context().run(self._run, held, on_finished)
        return self

    def _run(self, held: HeldLease, on_finished: OnFinished) -> None:
        call: HandlerCall | None = None
        try:
            call = self._call(held)
            if held.task.is_async:
                _refuse_loop(held)
            result = asyncio.run(self._closing(call())) if held.task.is_async else call()
            self.ended = execution.outcome_of_return(result), None
        except BaseException as error:  # noqa: BLE001 - whatever it was, it ended the handler
            self._raised(held, error)
        on_finished(held, self.ended[0], call.excerpt.text() if call else None)

    async def _arun(self, held: HeldLease, on_finished: OnFinished) -> None:
        call: HandlerCall | None = None
        try:
            call = self._call(held)
            result = await (call() if held.task.is_async else asyncio.to_thread(call))
            self.ended = execution.outcome_of_return(result), None
        except BaseException as error:  # noqa: BLE001 - whatever it was, it ended the handler
            self._raised(held, error)
        on_finished(held, self.ended[0], call.excerpt.text() if call else None)

    def _call(self, held: HeldLease) -> HandlerCall:
        call = HandlerCall(held.task, held.job, held.lease_state, self._engine, self._hooks)
        CURRENT.set(call.handle)
        log_capture.CURRENT.set(call.excerpt)
        return call

    def _raised(self, held: HeldLease, error: BaseException) -> None:
        outcome = execution.outcome_of_exception(error, held.task, None, None)
        if isinstance(error, KeyboardInterrupt):
            outcome = Released()
        self.ended = outcome, error

    async def _closing(self, handler: Coroutine[Any, Any, T]) -> T:
        """Run the handler, then close its loop's connections."""
        try:
            return await handler
        finally:
            await self._engine.aclose()

    def stop(self, why: StopReason) -> None:
        """Do nothing: no handler is stopped here."""

    def cancel_requested(self) -> None:
        """Do nothing: the handle sees the request on its next report."""

    def kill(self) -> bool:
        """Do nothing: no handler is killed here."""
        return False

    async def close(self) -> None:
        """Do nothing."""


def _refuse_loop(held: HeldLease) -> None:
    with suppress(RuntimeError):
        asyncio.get_running_loop()
        raise InvalidValue(
            f"{held.job.task} is an async def, and an event loop is already running here; "
            "write await aenqueue(…), or await adrain(…)"
        )


class Suspended(Exception):
    """Raised if a coroutine that must not suspend tries to wait."""


def drive(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine without an event loop, because this thread may already be running one.

    The coroutine must not suspend. It would do so only to wait for a lock.

    Args:
        coroutine: The coroutine.

    Returns:
        Its result.

    Raises:
        Suspended: The coroutine tried to wait.
    """
    try:
        coroutine.send(None)
    except StopIteration as done:
        answer: T = done.value
        return answer
    except RuntimeError as error:
        if "event loop" in str(error):
            raise Suspended from error
        raise
    coroutine.close()
    raise Suspended


WORKER = WorkerId(UUID(int=0))
RunOutcome = Literal["completed", "failed", "retrying", "snoozed", "cancelled", "released"]
_BUSY = 0.05
_BUSY_TIMES = 100


@dataclass(frozen=True, slots=True)
class RunRecord:
    """The record of one attempt that ran.

    Attributes:
        job: The job after the attempt.
        ending: How the attempt ended.
        error: The handler's error, or None.
    """

    job: JobRow
    ending: RunOutcome
    error: BaseException | None = None


class JobRunner:
    """Runs claimed jobs one after another."""

    def __init__(self, app: Tenure, *, settle_by: Engine | None = None, is_async: bool) -> None:
        self._engine = app.engine if settle_by is None else settle_by
        self._here = InlineExecutor(app.engine, app.hooks, is_async=is_async)
        self._held_leases = HeldLeases()
        link = DirectConnection(self._engine, is_async=is_async)
        events = RuntimeEvents()
        EventEmitter(app.hooks.listeners, worker="tests").subscribe_to(events)
        self._settler = Settler(
            app.engine.store, link, self._held_leases, events=events, sealing=app.engine.sealing
        )
        self._settings = WorkerSettings(backoff=app.defaults.backoff)
        self._dispatcher = Dispatcher(
            slots=1,
            tasks=app.tasks,
            held_leases=self._held_leases,
            settler=self._settler,
            executors=Executors(loop=self._here, thread=self._here, process=None),
            settings=self._settings,
            defaults=app.defaults,
            events=events,
            sealing=app.engine.sealing,
        )

    def run(self, claims: ClaimResult) -> RunRecord:
        """Run the claimed job and settle it."""
        self._here.ended = Released(), None
        with log_capture.capture_logs():
            self._dispatcher.take(claims, boottime())
        for _ in range(_BUSY_TIMES):
            try:
                while drive(self._settler.tick()):
                    pass
                break
            except Suspended:
                time.sleep(_BUSY)
        else:
            raise _locked(claims)
        return self._engine.run(self._ran(claims))

    async def arun(self, claims: ClaimResult) -> RunRecord:
        """Async version of `run`."""
        self._here.ended = Released(), None
        with log_capture.capture_logs():
            self._dispatcher.take(claims, boottime())
            await self._dispatcher.until_idle()
        for _ in range(_BUSY_TIMES):
            if not await self._settler.tick():
                break
        else:
            raise _locked(claims)
        return await self._engine.arun(self._ran(claims))

    def _ran(self, claims: ClaimResult) -> Op[RunRecord]:
        """Return the attempt's record, with the error to raise."""
        [claimed] = claims.jobs
        if self._settings.unknown_tasks:
            raise InvalidValue(
                f"job {claimed.job.id} has the task {claimed.job.task!r}, which this app does not "
                "know; import the module that registers it"
            )
        store = self._engine.store
        row = (yield from store.jobs.get(claimed.job.id)) or claimed.job
        outcome, error = self._here.ended
        if isinstance(outcome, Succeeded) and row.state in (State.QUEUED, State.FAILED):
            # The store rejected the result, or the transaction wasn't committed.
            last = (yield from store.jobs.attempts(row.id))[-1]
            last = self._engine.sealing.open_attempt(last, task=row.task)
            outcome = Failed(Error("", ""))
            error = PayloadError(last.error_message or "the result cannot be kept")
        if row.state is State.CANCELLED or not isinstance(outcome, Failed):
            error = error if isinstance(error, KeyboardInterrupt) else None
        if error is not None:
            attempt = f"attempt {claimed.job.attempt} of {row.max_attempts}"
            error.add_note(f"in job {row.id} of {row.task}, {attempt}")
        row = self._engine.sealing.open_job_if_possible(row)
        return RunRecord(row, _ending(row, outcome), error)


def _ending(row: JobRow, outcome: Outcome) -> RunOutcome:
    match row.state:
        case State.COMPLETED:
            return "completed"
        case State.FAILED:
            return "failed"
        case State.CANCELLED:
            return "cancelled"
        case _ if isinstance(outcome, Failed):
            return "retrying"
        case _:
            return "snoozed" if isinstance(outcome, Snoozed) else "released"


def _locked(claims: ClaimResult) -> Unreachable:
    [claimed] = claims.jobs
    return Unreachable(
        f"the end of job {claimed.job.id} cannot be stored, because another transaction has "
        "locked its row; end that one first"
    )
