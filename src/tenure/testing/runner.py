"""Run one claimed job in this thread, with the worker's dispatcher and settler.

A handler runs with a real lease, and its end is settled by the rules of a worker. Not enforced
here: time limits, cancels while it runs, processes of its own.
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
    """A link over the app's own connections."""

    def __init__(self, engine: Engine, *, is_async: bool) -> None:
        self._engine = engine
        self._is_async = is_async

    async def run(self, op: Op[T]) -> T:
        """Perform an operation; in the sync world without ever letting go of the thread."""
        return await self._engine.arun(op) if self._is_async else self._engine.run(op)

    def set_deadline(self, deadline: timedelta) -> None:
        """Nothing is renewed here."""

    async def open(self) -> None:
        """Nothing to open."""

    async def close(self) -> None:
        """Nothing to close."""

    def listen(self, channel: str, *, anyway: bool = False) -> AsyncIterator[str]:
        """Nobody listens here."""
        raise NotImplementedError(channel)


class InlineExecutor:
    """The way to run a handler in the thread of whoever asks, or on its loop."""

    def __init__(self, engine: Engine, hooks: Hooks, *, is_async: bool) -> None:
        self._engine = engine
        self._hooks = hooks
        self._is_async = is_async
        self._tasks: set[asyncio.Task[None]] = set()
        self.ended: tuple[Outcome, BaseException | None] = (Released(), None)

    def start(self, held: HeldLease, on_finished: OnFinished) -> "InlineExecutor":
        """Run the handler to its end; on a loop, begin to."""
        # A context of its own, as in a worker: what a test has set is not there either.
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
        """The handler on a loop of its own, whose connections end with it."""
        try:
            return await handler
        finally:
            await self._engine.aclose()

    def stop(self, why: StopReason) -> None:
        """Nobody asks a handler to stop here."""

    def cancel_requested(self) -> None:
        """Its handle sees it with its next report."""

    def kill(self) -> bool:
        """Nobody ends a handler here."""
        return False

    async def close(self) -> None:
        """Nothing to let go of."""


def _refuse_loop(held: HeldLease) -> None:
    with suppress(RuntimeError):
        asyncio.get_running_loop()
        raise InvalidValue(
            f"{held.job.task} is an async def, and an event loop runs here already; "
            "write await aenqueue(…), or await adrain(…)"
        )


class Suspended(Exception):
    """A coroutine that was to run through wants to wait."""


def drive(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end without an event loop: there may be one in this thread already.
    It awaits only what answers at once, unless it must wait for a lock."""
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
    """One attempt that was run: the job as it was then left, how it ended, and the error if the
    handler failed."""

    job: JobRow
    ending: RunOutcome
    error: BaseException | None = None


class JobRunner:
    """What runs one claimed job after the other."""

    def __init__(self, app: Tenure, *, settle_by: Engine | None = None, is_async: bool) -> None:
        self._engine = app.engine if settle_by is None else settle_by
        self._here = InlineExecutor(app.engine, app.hooks, is_async=is_async)
        self._held_leases = HeldLeases()
        link = DirectConnection(self._engine, is_async=is_async)
        events = RuntimeEvents()
        EventEmitter(app.hooks.listeners, worker="tests").subscribe_to(events)
        self._settler = Settler(app.engine.store, link, self._held_leases, events=events)
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
        )

    def run(self, claims: ClaimResult) -> RunRecord:
        """Run the one job that was claimed, and settle it."""
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
        """What became of the job, and whether that is an error to raise."""
        [claimed] = claims.jobs
        if self._settings.unknown_tasks:
            raise InvalidValue(
                f"job {claimed.job.id} is one of task {claimed.job.task!r}, which this app does "
                "not know; import the module that registers it"
            )
        store = self._engine.store
        row = (yield from store.jobs.get(claimed.job.id)) or claimed.job
        outcome, error = self._here.ended
        if isinstance(outcome, Succeeded) and row.state in (State.QUEUED, State.FAILED):
            # The store has judged otherwise: the result cannot be kept, or was not committed.
            last = (yield from store.jobs.attempts(row.id))[-1]
            outcome = Failed(Error("", ""))
            error = PayloadError(last.error_message or "the result cannot be kept")
        if row.state is State.CANCELLED or not isinstance(outcome, Failed):
            error = error if isinstance(error, KeyboardInterrupt) else None
        if error is not None:
            attempt = f"attempt {claimed.job.attempt} of {row.max_attempts}"
            error.add_note(f"in job {row.id} of {row.task}, {attempt}")
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
        f"job {claimed.job.id} has ended, and that cannot be recorded: another transaction has "
        "its row locked; end that one first"
    )
