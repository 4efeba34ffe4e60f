"""Brings claimed jobs to a way to run them, as slots become free, and their ends to the settler."""

import asyncio
import contextlib
import random
import threading
import traceback
from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import lru_cache, partial

from tenure._clock import boottime
from tenure._model.lease import ClaimedJob, ClaimResult
from tenure._model.outcome import (
    SUCCEEDED,
    Failed,
    Lost,
    Outcome,
    Released,
    Settlement,
    SettleRequest,
    Succeeded,
)
from tenure._model.queue import EVERY_QUEUE
from tenure._registry import Registry
from tenure._rules import claiming, leasing, lifecycle
from tenure._rules.redaction import Redactor
from tenure._runtime import execution
from tenure._runtime.confirmer import Confirmer
from tenure._runtime.events import RuntimeEvents
from tenure._runtime.execution import Executor
from tenure._runtime.held_leases import HeldLease, HeldLeases
from tenure._runtime.lease_board import Phase
from tenure._runtime.settler import Settler
from tenure._services.base import log, log_fields
from tenure.config import Backoff, Defaults
from tenure.errors import Error

_AFTER_NO_START = timedelta(seconds=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class Executors:
    """The ways to run a handler that there are here; `process` only under a parent."""

    loop: Executor
    thread: Executor
    process: Executor | None

    def executor_for(self, held: HeldLease) -> Executor:
        """The way for this job: a suspect's is a process, whatever its task says."""
        if self.process is not None and (held.task.process or held.suspect):
            return self.process
        return self.loop if held.task.is_async else self.thread

    async def close(self) -> None:
        for executor in (self.process, self.thread, self.loop):
            if executor is not None:
                await executor.close()


@dataclass(slots=True)
class WorkerSettings:
    """What the worker has learnt that others want to know: its row, the claimer, the backoff."""

    unknown_tasks: dict[str, None] = field(default_factory=dict)
    backoff: Backoff = field(default_factory=Backoff)
    redactor: Redactor = field(default_factory=Redactor)
    peer_count: int = 1


class Dispatcher:
    """The slots of one process, and what waits for them. Lives on the loop that runs handlers."""

    def __init__(
        self,
        *,
        slots: int,
        tasks: Registry,
        held_leases: HeldLeases,
        settler: Settler,
        executors: Executors,
        settings: WorkerSettings,
        defaults: Defaults,
        events: RuntimeEvents,
        confirmer: Confirmer | None = None,
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self._slots = slots
        self._confirmer = confirmer
        self._tasks = tasks
        self._held_leases = held_leases
        self._settler = settler
        self._executors = executors
        self._settings = settings
        self._defaults = defaults
        self._events = events
        self._terms = lru_cache(maxsize=256)(partial(leasing.lease_times, defaults=defaults))
        # Where claims arrive on another thread, this is the loop that starts them.
        self._loop = loop
        self._thread = threading.get_ident()
        self._claimed: deque[list[HeldLease]] = deque()
        self._ready: deque[HeldLease] = deque()
        self._running = 0
        self._rate = claiming.Rate()
        self._no_prefetch_until = 0.0
        self._retired = False
        self._ended_one = asyncio.Event()

    @property
    def running(self) -> int:
        return self._running

    @property
    def idle(self) -> bool:
        """Whether nothing runs and nothing waits to."""
        return not self._running and not self._ready and not self._claimed

    async def until_idle(self) -> None:
        """Return once nothing runs and nothing waits to."""
        while not self.idle:
            self._ended_one.clear()
            await self._ended_one.wait()

    def capacity(self, *, coming: int, limited: bool) -> int:
        """How many jobs may be claimed now: free slots, and the prefetch where it is allowed, less
        what is on its way."""
        ahead = self._ahead(limited=limited)
        waiting = len(self._ready) + coming - (self._slots - self._running)
        if waiting > claiming.refill_at(ahead):
            # Large claims now and then, instead of a small one for every slot that is free.
            return 0
        return min(ahead - waiting, claiming.MAX_CLAIM)

    def _ahead(self, *, limited: bool) -> int:
        now = boottime()
        if limited or now < self._no_prefetch_until:
            return 0
        return claiming.prefetch_limit(self._rate.per_second(now))

    def take(self, claims: ClaimResult, asked_at: float) -> None:
        """Take up what was claimed, and start as much of it as there are slots for."""
        self.hold(claims, asked_at)
        self.start_claimed()

    def hold(self, claims: ClaimResult, asked_at: float) -> None:
        """Hold what was claimed, so that it is renewed from now on. From any thread: the loop may
        be blocked, and starts it when it moves again."""
        taken, strangers = [], []
        for claimed in claims.jobs:
            task = self._tasks.get(claimed.job.task)
            if task is None:
                strangers.append(claimed)
            else:
                terms = self._terms(claimed.lease.ttl, stop_within=task.stop_within)
                taken.append(HeldLease(claimed, task, terms, asked_at))
        self._held_leases.add(*taken)
        if taken:
            self._claimed.append(taken)
        if threading.get_ident() == self._thread:
            self._leave_all_to_others(strangers)
        elif self._loop is not None and (taken or strangers):
            with contextlib.suppress(RuntimeError):  # the loop is closed: the process is ending
                self._loop.call_soon_threadsafe(self._arrived, strangers)

    def _arrived(self, strangers: Sequence[ClaimedJob]) -> None:
        self._leave_all_to_others(strangers)
        self.start_claimed()

    def start_claimed(self) -> None:
        """Start as much of what was claimed as there are slots for. Let no suspect and no job on
        its last attempt wait here behind others' work."""
        if not self._claimed:
            return
        impatient = []
        while self._claimed:
            for held in self._claimed.popleft():
                job = held.job
                if job.meta and lifecycle.is_expired(job):
                    self._end(held, lifecycle.EXPIRED, None, boottime())
                    continue
                self._ready.append(held)
                if held.suspect or job.attempt >= job.max_attempts:
                    impatient.append(held)
        if self._retired:
            # This claim was on its way when the worker was told to stop.
            self.release_all()
        self._start()
        self._release_impatient(impatient)

    def _leave_all_to_others(self, strangers: Sequence[ClaimedJob]) -> None:
        for claimed in strangers:
            self._leave_to_others(claimed)

    def _leave_to_others(self, claimed: ClaimedJob) -> None:
        """Give back a job of a task that is not known here: a newer release will know it."""
        if claimed.job.task not in self._settings.unknown_tasks:
            log.warning(
                "no task %r is known here; it is left to others",
                claimed.job.task,
                extra=log_fields(claimed.job),
            )
            self._settings.unknown_tasks[claimed.job.task] = None
        settlement = lifecycle.settle(
            Released(),
            attempt=claimed.job.attempt,
            limit=claimed.job.max_attempts,
            backoff=timedelta(0),
        )
        self._settler.put(None, SettleRequest(claimed.lease, settlement))

    def _start(self) -> None:
        while self._ready and self._running < self._slots and not self._retired:
            held = self._ready.popleft()
            now = boottime()
            # The watcher may not have looked yet, if this process or its loop stood still.
            if not held.may_begin(now):
                self._end(held, Released(), None, now)
                continue
            self._running += 1
            executor = self._executors.executor_for(held)
            if (
                held.confirm
                and self._confirmer is not None
                and executor is not self._executors.process
            ):
                # It keeps its slot while it waits. A process executor confirms once it has a
                # process.
                held.mark(Phase.AWAITING_PROCESS)
                self._confirmer.confirm(held).add_done_callback(partial(self._confirmed, held))
            else:
                self._start_in(executor, held, now)

    def _confirmed(self, held: HeldLease, confirmed: asyncio.Future[bool]) -> None:
        """The store knows that this job begins, or it may not begin."""
        if confirmed.result() and not self._retired:
            self._start_in(self._executors.executor_for(held), held, boottime())
            return
        why = held.stopping
        self._ended(held, Released() if why is None else execution.outcome_of_stop(why, None), None)

    def _start_in(self, executor: Executor, held: HeldLease, now: float) -> None:
        if executor is self._executors.process:
            # Its time begins when there is a process, for which it may have to wait.
            held.mark(Phase.AWAITING_PROCESS)
        else:
            held.begin(Phase.STARTED, now)
        try:
            held.running = executor.start(held, self._ended)
        except (OSError, RuntimeError) as error:
            # No more threads or descriptors: somebody else may have some. After a pause: this
            # process would claim it again at once, and again.
            log.error(
                "job %s cannot be started here: %s", held.job.id, error, extra=log_fields(held.job)
            )
            self._running -= 1
            held.started_at = None
            why = Error("CannotStart", f"no thread could be started for its handler: {error}")
            outcome = Released(error=why, after=_AFTER_NO_START)
            self._end(held, outcome, None, boottime())
            return
        if held.stopping is not None:
            # Asked to stop by the service thread between the two lines above.
            held.running.stop(held.stopping)
        for notify in self._events.started:
            notify(held)

    def _ended(self, held: HeldLease, outcome: Outcome, excerpt: str | None) -> None:
        now = boottime()
        self._running -= 1
        self._rate.note(1, now)
        held.running = None
        if outcome is SUCCEEDED and excerpt is None and _is_plain(held):
            held.end(now)
            self._settler.put_completed(held)
        else:
            self._end(held, outcome, excerpt, now)
        if self._ready:
            self._start()
        self._ended_one.set()
        for notify in self._events.slot_freed:
            notify()

    def _end(self, held: HeldLease, outcome: Outcome, excerpt: str | None, now: float) -> None:
        """Hand a running period that is over to the settler, unless it settled itself. A defect in
        judging it is a failure: the lease would be renewed for ever otherwise."""
        held.end(now)
        try:
            self._judge(held, outcome, excerpt)
        except Exception as defect:  # noqa: BLE001 - it is told below, and settled
            log.exception(
                "%s: an end could not be judged; the attempt failed",
                held.job.task,
                extra=log_fields(held.job),
            )
            settlement = lifecycle.settle(
                Failed(Error(type(defect).__qualname__, str(defect), traceback.format_exc())),
                attempt=held.job.attempt,
                limit=held.job.max_attempts,
                backoff=self._waits(self._defaults.backoff, held),
            )
            self._settler.put(held, SettleRequest(held.lease, settlement, excerpt))

    def _judge(self, held: HeldLease, outcome: Outcome, excerpt: str | None) -> None:
        if held.lease_state.settled:
            if isinstance(outcome, Failed):
                error = self._settings.redactor.error(outcome.error, of=held.job)
                log.warning(
                    "job %s was completed by its transaction, and then its handler failed: %s\n%s",
                    held.job.id,
                    error.message,
                    error.trace,
                    extra=log_fields(held.job),
                )
            self._held_leases.drop(held)
            for notify in self._events.completed:
                notify(held)
            return
        succeeded = isinstance(outcome, Succeeded)
        if not succeeded:
            outcome = self._unsettled(held, outcome)
        settlement = lifecycle.settle(
            outcome,
            attempt=held.job.attempt,
            limit=held.job.max_attempts,
            backoff=self.retry_after(held) if isinstance(outcome, Failed) else timedelta(0),
        )
        if isinstance(outcome, Failed):
            # Why arguments do not fit is told by quoting them; the attempt has it all.
            unread = outcome.reason == "invalid_arguments"
            error = self._settings.redactor.error(outcome.error, of=held.job, whole=unread)
            _report(held, error, settlement)
        follow_ups = held.lease_state.follow_ups if succeeded else []
        self._settler.put(
            held,
            SettleRequest(held.lease, settlement, excerpt),
            follow_ups=follow_ups,
            completed_in_caller_transaction=succeeded
            and held.lease_state.completed_in_caller_transaction,
        )

    def _unsettled(self, held: HeldLease, outcome: Outcome) -> Outcome:
        """The outcome with what the handler's process cannot know: whether it had begun."""
        if isinstance(outcome, Released) and held.begun:
            return replace(outcome, begun=True)
        if isinstance(outcome, Lost):
            log.warning(
                "job %s was lost: %s",
                held.job.id,
                outcome.error.message,
                extra=log_fields(held.job),
            )
        return outcome

    def retry_after(self, held: HeldLease) -> timedelta:
        """How long its job waits if this attempt fails."""
        return self._waits(held.task.backoff or self._settings.backoff, held)

    def _waits(self, policy: Backoff, held: HeldLease) -> timedelta:
        chance = random.random()  # noqa: S311 - spreads retries
        return lifecycle.delay(policy, attempt=held.job.attempt, chance=chance)

    def _release_impatient(self, impatient: Sequence[HeldLease]) -> None:
        waiting = [held for held in impatient if held in self._ready]
        if waiting:
            self._no_prefetch_until = boottime() + 5 * self._defaults.poll.total_seconds()
            for held in waiting:
                self.release(held)

    def release(self, held: HeldLease) -> None:
        """Release a job that has not started."""
        if held in self._ready:
            self._ready.remove(held)
            self._end(held, Released(), None, boottime())
            self._ended_one.set()

    def release_surplus(self, *, limited: bool) -> None:
        """Release what came last and waits beyond what may be claimed ahead."""
        surplus = len(self._ready) - self._ahead(limited=limited)
        for held in list(self._ready)[len(self._ready) - surplus :] if surplus > 0 else ():
            self.release(held)

    def release_queue(self, queues: Collection[str]) -> None:
        """Release what has not started and came from these queues, which are paused or limited."""
        for held in list(self._ready):
            if held.job.queue in queues or EVERY_QUEUE in queues:
                self.release(held)

    def stop_taking_work(self) -> None:
        """Start nothing any more, and release what has not started."""
        self._retired = True
        self.release_all()

    def release_all(self) -> None:
        for held in list(self._ready):
            self.release(held)


def _is_plain(held: HeldLease) -> bool:
    """Whether nothing but the end of the handler is to be stored."""
    state = held.lease_state
    return held.job.key is None and not (
        state.settled or state.completed_in_caller_transaction or state.follow_ups
    )


def _report(held: HeldLease, error: Error, settlement: Settlement) -> None:
    """Say in the log that an attempt failed, why, and what comes next."""
    then = "it is among the dead letters now"
    if settlement.after is not None:
        then = f"again in {settlement.after.total_seconds():.0f} s"
    log.warning(
        "job %s (%s): attempt %d of %d failed: %s: %s; %s\n%s",
        held.job.id,
        held.job.task,
        held.job.attempt,
        held.job.max_attempts,
        error.type,
        error.message,
        then,
        error.trace,
        extra=log_fields(held.job),
    )
