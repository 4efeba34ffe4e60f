"""Running a claimed job here and now: the worker's dispatcher and settler, without its threads.

A handler runs with a real lease, and its end is settled by the rules of a worker. Not enforced
here: time limits, cancels while it runs, processes of its own.
"""

import time
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from tenure._executors import logs
from tenure._model.ids import WorkerId
from tenure._model.job import JobRow, State
from tenure._model.lease import Claims
from tenure._model.outcome import Error, Failed, Outcome, Released, Snoozed, Succeeded
from tenure._services.announcer import Announcer
from tenure._services.dispatcher import Dispatcher, Notes, Ways
from tenure._services.holdings import Holdings
from tenure._services.settler import Settler
from tenure._store.engine import Engine
from tenure._store.port import Op
from tenure.app import Tenure
from tenure.errors import InvalidValue, PayloadError, Unreachable
from tenure.job import boottime
from tenure.testing.here import Here, Straight, Suspended, drive

WORKER = WorkerId(UUID(int=0))
Ending = Literal["completed", "failed", "retrying", "snoozed", "cancelled", "released"]
_BUSY = 0.05
_BUSY_TIMES = 100


@dataclass(frozen=True, slots=True)
class Ran:
    """One attempt that was run: the job as it was then left, how it ended, and the error if the
    handler failed."""

    job: JobRow
    ending: Ending
    error: BaseException | None = None


class Bench:
    """What runs one claimed job after the other."""

    def __init__(self, app: Tenure, *, settle_by: Engine | None = None, is_async: bool) -> None:
        self._engine = app.engine if settle_by is None else settle_by
        self._here = Here(app.engine, app.hooks, is_async=is_async)
        self._holdings = Holdings()
        link = Straight(self._engine, is_async=is_async)
        self._settler = Settler(app.engine.store, link, self._holdings)
        self._notes = Notes(backoff=app.defaults.backoff)
        self._dispatcher = Dispatcher(
            slots=1,
            tasks=app.tasks,
            holdings=self._holdings,
            settler=self._settler,
            ways=Ways(loop=self._here, thread=self._here, process=None),
            notes=self._notes,
            defaults=app.defaults,
        )
        announcer = Announcer(app.hooks.listeners, worker="tests")
        self._dispatcher.on_started = announcer.started
        self._dispatcher.on_completed = announcer.completed
        self._settler.on_settled = announcer.settled

    def run(self, claims: Claims) -> Ran:
        """Run the one job that was claimed, and settle it."""
        self._here.ended = Released(), None
        with logs.excerpts():
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

    async def arun(self, claims: Claims) -> Ran:
        """The same in the async world."""
        self._here.ended = Released(), None
        with logs.excerpts():
            self._dispatcher.take(claims, boottime())
            await self._dispatcher.until_idle()
        for _ in range(_BUSY_TIMES):
            if not await self._settler.tick():
                break
        else:
            raise _locked(claims)
        return await self._engine.arun(self._ran(claims))

    def _ran(self, claims: Claims) -> Op[Ran]:
        """What became of the job, and whether that is an error to raise."""
        [claimed] = claims.jobs
        if self._notes.strangers:
            raise InvalidValue(
                f"job {claimed.job.id} is one of task {claimed.job.task!r}, which this app does "
                "not know; import the module that registers it"
            )
        store = self._engine.store
        row = (yield from store.get(claimed.job.id)) or claimed.job
        outcome, error = self._here.ended
        if isinstance(outcome, Succeeded) and row.state in (State.QUEUED, State.FAILED):
            # The store has judged otherwise: the result cannot be kept, or was not committed.
            last = (yield from store.attempts(row.id))[-1]
            outcome = Failed(Error("", ""))
            error = PayloadError(last.error_message or "the result cannot be kept")
        if row.state is State.CANCELLED or not isinstance(outcome, Failed):
            error = error if isinstance(error, KeyboardInterrupt) else None
        if error is not None:
            attempt = f"attempt {claimed.job.attempt} of {row.max_attempts}"
            error.add_note(f"in job {row.id} of {row.task}, {attempt}")
        return Ran(row, _ending(row, outcome), error)


def _ending(row: JobRow, outcome: Outcome) -> Ending:
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


def _locked(claims: Claims) -> Unreachable:
    [claimed] = claims.jobs
    return Unreachable(
        f"job {claimed.job.id} has ended, and that cannot be recorded: another transaction has "
        "its row locked; end that one first"
    )
