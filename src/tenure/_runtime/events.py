"""Events from one process that runs jobs. They have two subscribers: listeners and the log."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache

from tenure._hooks.listeners import Listeners
from tenure._model.attempt import AttemptOutcome
from tenure._model.event import JobEvent, JobEventName, WorkerEvent, WorkerEventName
from tenure._model.job import JobRow, State, fields
from tenure._model.lease import RescuedLease, SettleResult, SettleStatus
from tenure._model.outcome import COMPLETED, Settlement, SettleRequest
from tenure._rules.sanitize import as_unstorable, sanitized
from tenure._runtime.held_leases import HeldLease
from tenure._services.base import log, log_fields

_ENDS: dict[State, JobEventName] = {
    State.COMPLETED: "completed",
    State.FAILED: "failed",
    State.CANCELLED: "cancelled",
}
_USUAL: Sequence[JobEventName] = ("completed",)
_RETURNS: dict[AttemptOutcome, JobEventName] = {
    AttemptOutcome.FAILED: "retrying",
    AttemptOutcome.TIMED_OUT: "retrying",
    AttemptOutcome.SNOOZED: "snoozed",
    AttemptOutcome.RELEASED: "released",
}
# The event for the outcome itself. The event for the job's new state follows it.
_FIRST: dict[AttemptOutcome, JobEventName] = {
    AttemptOutcome.TIMED_OUT: "timed_out",
    AttemptOutcome.LOST: "lost",
}

OnHeld = Callable[[HeldLease], None]
OnSettled = Callable[[HeldLease, SettleRequest, SettleResult], None]
OnRescued = Callable[[Sequence[RescuedLease]], None]
OnSucceeded = Callable[[Sequence[HeldLease]], None]
OnSignal = Callable[[], None]


@dataclass(frozen=True, slots=True, eq=False)
class RuntimeEvents:
    """The callbacks for each event, called in order.

    - `completed`: the handler's own transaction completed the job, or the job reached its target.
    - `succeeded`: the store completed jobs that have no result and no log.
    - `settled`: the store ended an attempt in any other way, or had already ended it.
    - `queue_empty`: a claim found nothing.
    - `backlog`: there are more jobs than one claim can take.
    """

    started: list[OnHeld] = field(default_factory=list)
    completed: list[OnHeld] = field(default_factory=list)
    succeeded: list[OnSucceeded] = field(default_factory=list)
    settled: list[OnSettled] = field(default_factory=list)
    rescued: list[OnRescued] = field(default_factory=list)
    slot_freed: list[OnSignal] = field(default_factory=list)
    backlog: list[OnSignal] = field(default_factory=list)
    queue_empty: list[OnSignal] = field(default_factory=list)


@cache
def event_names(state: State, ending: AttemptOutcome) -> Sequence[JobEventName]:
    """Return the events for an attempt's outcome and its job's new state."""
    last = _ENDS.get(state) or _RETURNS.get(ending)
    names: list[JobEventName] = [_FIRST[ending]] if ending in _FIRST else []
    return names if last is None else [*names, last]


class EventEmitter:
    """Deliver events to the app's listeners, from any thread, without waiting."""

    def __init__(self, listeners: Listeners, *, worker: str) -> None:
        self._listeners = listeners
        self._worker = worker

    def subscribe_to(self, events: RuntimeEvents) -> None:
        events.started.append(self.started)
        events.completed.append(self.completed)
        events.succeeded.append(self.succeeded)
        events.settled.append(self.settled)
        events.rescued.append(self.rescued)

    def worker(self, name: WorkerEventName, queues: Sequence[str], slots: int) -> None:
        self._listeners.deliver(
            WorkerEvent(
                name=name,
                worker=self._worker,
                queues=queues,
                concurrency=slots,
                at=datetime.now(UTC),
            )
        )

    def started(self, held: HeldLease) -> None:
        if "started" in self._listeners:
            self._deliver("started", held.job, State.RUNNING)

    def completed(self, held: HeldLease) -> None:
        if "completed" in self._listeners:
            self._deliver("completed", held.job, State.COMPLETED, duration=held.took)

    def succeeded(self, jobs: Sequence[HeldLease]) -> None:
        if "completed" in self._listeners:
            for held in jobs:
                job = held.job
                self.ended(
                    job,
                    State.COMPLETED,
                    COMPLETED,
                    reason=COMPLETED.reason,
                    attempt=job.attempt,
                    took=held.took,
                )

    def settled(self, held: HeldLease, ended: SettleRequest, answer: SettleResult) -> None:
        # A rejected attempt ended earlier, and the process that ended it delivered the event.
        if not self._listeners or answer.answer is SettleStatus.REFUSED:
            return
        state = answer.state or ended.settlement.state
        if state is State.FAILED and ended.settlement.state is State.COMPLETED:
            # The store rejected its result.
            ended = sanitized(ended)
            if ended.settlement.state is State.COMPLETED:
                ended = as_unstorable(ended, "the store refused the result")
        took = held.took
        if state is not State.QUEUED or took is not None:
            self.ended(
                held.job,
                state,
                ended.settlement,
                reason=answer.reason or ended.settlement.reason,
                attempt=held.job.attempt,
                took=took,
            )

    def ended(
        self,
        job: JobRow,
        state: State,
        settlement: Settlement,
        *,
        reason: str | None,
        attempt: int,
        took: timedelta | None = None,
    ) -> None:
        # Enum lookups are slow, and nearly all attempts end like this.
        usual = settlement is COMPLETED and state is State.COMPLETED
        for name in _USUAL if usual else event_names(state, settlement.ending):
            if name in self._listeners:
                after = settlement.after if state is State.QUEUED else None
                event = JobEvent(
                    name, job.id, job.task, job.queue, state, attempt, job.max_attempts,
                    datetime.now(UTC), job.key, fields(job.meta), reason, settlement.error, took,
                    after, self._worker,
                )  # fmt: skip
                self._listeners.deliver(event)

    def rescued(self, jobs: Sequence[RescuedLease]) -> None:
        if not self._listeners:
            return
        for job in jobs:
            names: list[JobEventName] = ["lost"]
            if job.state in _ENDS:
                names.append(_ENDS[job.state])
            for name in names:
                if name in self._listeners:
                    self._deliver(name, job, job.state, reason=job.reason)

    def _deliver(
        self,
        name: JobEventName,
        job: JobRow | RescuedLease,
        state: State,
        *,
        reason: str | None = None,
        duration: timedelta | None = None,
    ) -> None:
        job_id = job.job_id if isinstance(job, RescuedLease) else job.id
        event = JobEvent(
            name, job_id, job.task, job.queue, state, job.attempt, job.max_attempts,
            datetime.now(UTC), job.key, fields(job.meta), reason, None, duration, None,
            self._worker,
        )  # fmt: skip
        self._listeners.deliver(event)


def log_successes(events: RuntimeEvents) -> None:
    """Log each job that completes or is cancelled. Failures are logged elsewhere."""
    events.completed.append(_log_completed)
    events.succeeded.append(_log_succeeded)
    events.settled.append(_log_settled)


def _log_completed(held: HeldLease) -> None:
    _log(held, State.COMPLETED)


def _log_succeeded(jobs: Sequence[HeldLease]) -> None:
    for held in jobs:
        _log(held, State.COMPLETED)


def _log_settled(held: HeldLease, ended: SettleRequest, answer: SettleResult) -> None:
    state = answer.state or ended.settlement.state
    if answer.answer is not SettleStatus.REFUSED and state in (State.COMPLETED, State.CANCELLED):
        _log(held, state)


def _log(held: HeldLease, state: State) -> None:
    took = f", in {held.took.total_seconds():.3f} s" if held.took is not None else ""
    log.info(
        "job %s (%s): %s%s", held.job.id, held.job.task, state, took, extra=log_fields(held.job)
    )
