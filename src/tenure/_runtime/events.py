"""The events of one process that runs jobs, and two subscribers: listeners and the log."""

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
# What an ending is by itself, before where its job went.
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
    """The callbacks of each event. A service that is given them calls them in a plain loop.

    `completed`: the handler's own transaction completed the job, or it reached its target.
    `succeeded`: the store has completed jobs whose handlers left neither a result nor a log.
    `settled`: the store has ended a running period in any other way, or had ended it before.
    `queue_empty`: a claim found nothing. `backlog`: there is more than one claim can take.
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
    """The events of a running period that ended so and left its job in this state."""
    last = _ENDS.get(state) or _RETURNS.get(ending)
    names: list[JobEventName] = [_FIRST[ending]] if ending in _FIRST else []
    return names if last is None else [*names, last]


class EventEmitter:
    """Delivers events to the app's listeners. From any thread; never waits."""

    def __init__(self, listeners: Listeners, *, worker: str) -> None:
        self._listeners = listeners
        self._worker = worker

    def subscribe_to(self, events: RuntimeEvents) -> None:
        """Deliver these events from now on."""
        events.started.append(self.started)
        events.completed.append(self.completed)
        events.succeeded.append(self.succeeded)
        events.settled.append(self.settled)
        events.rescued.append(self.rescued)

    def worker(self, name: WorkerEventName, queues: Sequence[str], slots: int) -> None:
        """This process works from now on, begins to stop, or has run its last job."""
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
            self._tell("started", held.job, State.RUNNING)

    def completed(self, held: HeldLease) -> None:
        """A job was completed by its handler's own transaction, or by reaching its target."""
        if "completed" in self._listeners:
            self._tell("completed", held.job, State.COMPLETED, duration=held.took)

    def succeeded(self, jobs: Sequence[HeldLease]) -> None:
        """Jobs were completed, without a result."""
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
        """A running period of this process has ended in the store. Refused, it had ended before,
        and whoever ended it has told; given back before it began, it was none."""
        if not self._listeners or answer.answer is SettleStatus.REFUSED:
            return
        state = answer.state or ended.settlement.state
        if state is State.FAILED and ended.settlement.state is State.COMPLETED:
            # The store could not take its result.
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
        """A running period has ended, and left its job in this state."""
        # Enums are looked up slowly, and nearly all ends are this one.
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
        """Leases that had run out were ended here."""
        if not self._listeners:
            return
        for job in jobs:
            names: list[JobEventName] = ["lost"]
            if job.state in _ENDS:
                names.append(_ENDS[job.state])
            for name in names:
                if name in self._listeners:
                    self._tell(name, job, job.state, reason=job.reason)

    def _tell(
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
    """Log each job that completes or is cancelled. The settler logs failures everywhere."""
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
