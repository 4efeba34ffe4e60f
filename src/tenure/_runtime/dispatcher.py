"""Start claimed jobs as slots free up, and pass their outcomes to the settler."""

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
from tenure._rules.sealing import NOT_SEALING, Sealing
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
from tenure.kinds import TASKS

_AFTER_NO_START = timedelta(seconds=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class Executors:
    loop: Executor
    thread: Executor
    process: Executor | None

    def executor_for(self, held: HeldLease) -> Executor:
        """Choose the executor. A suspect gets its own process, regardless of its task.

        A built-in kind of work doesn't: it runs no code of the user's that could end this process,
        and the guard of a command must hear of each renewal here.
        """
        is_suspect = held.suspect and held.task.name not in TASKS
        if self.process is not None and (held.task.process or is_suspect):
            return self.process
        return self.loop if held.task.is_async else self.thread

    async def close(self) -> None:
        for executor in (self.process, self.thread, self.loop):
            if executor is not None:
                await executor.close()


@dataclass(slots=True)
class WorkerSettings:
    """Values that the worker learns at run time and shares among its services."""

    unknown_tasks: dict[str, None] = field(default_factory=dict)
    backoff: Backoff = field(default_factory=Backoff)
    # The store's minimum, for the log. The store enforces it itself.
    enforced_backoff: Backoff | None = None
    redactor: Redactor = field(default_factory=Redactor)
    peer_count: int = 1


class Dispatcher:
    """One process's slots and the jobs waiting for them, on the loop that runs handlers."""

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
        sealing: Sealing = NOT_SEALING,
        confirmer: Confirmer | None = None,
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self._slots = slots
        self._confirmer = confirmer
        self._sealing = sealing
        self._tasks = tasks
        self._held_leases = held_leases
        self._settler = settler
        self._executors = executors
        self._settings = settings
        self._defaults = defaults
        self._events = events
        self._terms = lru_cache(maxsize=256)(partial(leasing.lease_times, defaults=defaults))
        # The loop that starts jobs claimed on another thread.
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
        return not self._running and not self._ready and not self._claimed

    async def until_idle(self) -> None:
        while not self.idle:
            self._ended_one.clear()
            await self._ended_one.wait()

    def capacity(self, *, coming: int, limited: bool) -> int:
        """Return how many jobs may be claimed: free slots plus prefetch, minus pending claims."""
        ahead = self._ahead(limited=limited)
        waiting = len(self._ready) + coming - (self._slots - self._running)
        if waiting > claiming.refill_at(ahead):
            # Make fewer, larger claims instead of a small one for each free slot.
            return 0
        return min(ahead - waiting, claiming.MAX_CLAIM)

    def _ahead(self, *, limited: bool) -> int:
        now = boottime()
        if limited or now < self._no_prefetch_until:
            return 0
        return claiming.prefetch_limit(self._rate.per_second(now))

    def take(self, claims: ClaimResult, sent_at: float) -> None:
        self.hold(claims, sent_at)
        self.start_claimed()

    def hold(self, claims: ClaimResult, sent_at: float) -> None:
        """Hold claimed jobs for renewal. Any thread may call this, as the loop may be blocked."""
        taken, unknown = [], []
        for claimed in claims.jobs:
            task = self._tasks.get(claimed.job.task)
            if task is None:
                unknown.append(claimed)
            else:
                terms = self._terms(claimed.lease.ttl, stop_within=task.stop_within)
                taken.append(HeldLease(claimed, task, terms, sent_at))
        self._held_leases.add(*taken)
        if taken:
            self._claimed.append(taken)
        if threading.get_ident() == self._thread:
            self._release_all_unknown(unknown)
        elif self._loop is not None and (taken or unknown):
            with contextlib.suppress(RuntimeError):  # the loop is closed: the process is ending
                self._loop.call_soon_threadsafe(self._arrived, unknown)

    def _arrived(self, unknown: Sequence[ClaimedJob]) -> None:
        self._release_all_unknown(unknown)
        self.start_claimed()

    def start_claimed(self) -> None:
        """Start claimed jobs. Suspects and jobs on their last attempt never wait for a slot."""
        if not self._claimed:
            return
        urgent = []
        while self._claimed:
            for held in self._claimed.popleft():
                job = held.job
                if job.meta and lifecycle.is_expired(job):
                    self._end(held, lifecycle.EXPIRED, None, boottime())
                    continue
                self._ready.append(held)
                if held.suspect or job.attempt >= job.max_attempts:
                    urgent.append(held)
        if self._retired:
            # The worker started shutting down while this claim was in flight.
            self.release_all()
        self._start()
        self._release_urgent(urgent)

    def _release_all_unknown(self, unknown: Sequence[ClaimedJob]) -> None:
        for claimed in unknown:
            self._release_unknown(claimed)

    def _release_unknown(self, claimed: ClaimedJob) -> None:
        """Release a job whose task isn't registered here, so a newer worker can take it."""
        if claimed.job.task not in self._settings.unknown_tasks:
            log.warning(
                "task %r is not registered here, leaving its jobs to other workers",
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
            # The watchdog may not have checked yet if this process or its loop stalled.
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
                # The job keeps its slot while it waits. The process executor confirms starts
                # itself.
                held.mark(Phase.AWAITING_PROCESS)
                self._confirmer.confirm(held).add_done_callback(partial(self._confirmed, held))
            else:
                self._start_in(executor, held, now)

    def _confirmed(self, held: HeldLease, confirmed: asyncio.Future[bool]) -> None:
        if confirmed.result() and not self._retired:
            self._start_in(self._executors.executor_for(held), held, boottime())
            return
        why = held.stopping
        self._ended(held, Released() if why is None else execution.outcome_of_stop(why, None), None)

    def _start_in(self, executor: Executor, held: HeldLease, now: float) -> None:
        if executor is self._executors.process:
            # The job may have to wait for a process. Its timeout starts once it has one.
            held.mark(Phase.AWAITING_PROCESS)
        else:
            held.begin(Phase.STARTED, now)
        try:
            held.running = executor.start(held, self._ended)
        except (OSError, RuntimeError) as error:
            # This process is out of threads or descriptors, but others may not be. Pause, because
            # it would otherwise claim the job again immediately.
            log.error(
                "job %s could not start, released: %s",
                held.job.id,
                error,
                extra=log_fields(held.job),
            )
            self._running -= 1
            held.started_at = None
            why = Error("CannotStart", f"no thread for its handler: {error}")
            outcome = Released(error=why, after=_AFTER_NO_START)
            self._end(held, outcome, None, boottime())
            return
        if held.stopping is not None:
            # The service thread requested a stop between the two lines above.
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
        # Internal errors become failures: otherwise the lease would be renewed forever.
        held.end(now)
        try:
            self._judge(held, outcome, excerpt)
        except Exception as defect:  # noqa: BLE001 - logged and settled
            log.exception(
                "task %s: could not determine the outcome, attempt failed",
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
                job = self._sealing.open_job_if_possible(held.job)
                error = self._settings.redactor.error(outcome.error, of=job)
                log.warning(
                    "job %s completed in its transaction, then its handler raised: %s\n%s",
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
            # The message quotes the arguments, so only the attempt stores it.
            unread = outcome.reason == "invalid_arguments"
            job = self._sealing.open_job_if_possible(held.job)
            error = self._settings.redactor.error(outcome.error, of=job, whole=unread)
            _report(held, error, settlement, self._settings.enforced_backoff)
            # Dead letters are grouped and listed by signature, so it must not contain a secret.
            stored = replace(settlement.error or outcome.error, signature=error.signature)
            settlement = replace(settlement, error=stored)
        follow_ups = held.lease_state.follow_ups if succeeded else []
        self._settler.put(
            held,
            SettleRequest(held.lease, settlement, excerpt),
            follow_ups=follow_ups,
            completed_in_caller_transaction=succeeded
            and held.lease_state.completed_in_caller_transaction,
        )

    def _unsettled(self, held: HeldLease, outcome: Outcome) -> Outcome:
        """Add what the handler's process can't know: whether the attempt had started."""
        if isinstance(outcome, Released) and held.begun:
            return replace(outcome, begun=True)
        if isinstance(outcome, Lost):
            log.warning(
                "job %s lost: %s", held.job.id, outcome.error.message, extra=log_fields(held.job)
            )
        return outcome

    def retry_after(self, held: HeldLease) -> timedelta:
        return self._waits(held.task.backoff or self._settings.backoff, held)

    def _waits(self, policy: Backoff, held: HeldLease) -> timedelta:
        chance = random.random()  # noqa: S311 - spreads retries
        return lifecycle.delay(policy, attempt=held.job.attempt, chance=chance)

    def _release_urgent(self, urgent: Sequence[HeldLease]) -> None:
        waiting = [held for held in urgent if held in self._ready]
        if waiting:
            self._no_prefetch_until = boottime() + 5 * self._defaults.poll.total_seconds()
            for held in waiting:
                self.release(held)

    def release(self, held: HeldLease) -> None:
        if held in self._ready:
            self._ready.remove(held)
            self._end(held, Released(), None, boottime())
            self._ended_one.set()

    def release_surplus(self, *, limited: bool) -> None:
        """Release the newest waiting jobs beyond the prefetch limit."""
        surplus = len(self._ready) - self._ahead(limited=limited)
        for held in list(self._ready)[len(self._ready) - surplus :] if surplus > 0 else ():
            self.release(held)

    def release_queue(self, queues: Collection[str]) -> None:
        for held in list(self._ready):
            if held.job.queue in queues or EVERY_QUEUE in queues:
                self.release(held)

    def stop_taking_work(self) -> None:
        self._retired = True
        self.release_all()

    def release_all(self) -> None:
        for held in list(self._ready):
            self.release(held)


def _is_plain(held: HeldLease) -> bool:
    state = held.lease_state
    return held.job.key is None and not (
        state.settled or state.completed_in_caller_transaction or state.follow_ups
    )


def _report(
    held: HeldLease, error: Error, settlement: Settlement, enforced: Backoff | None
) -> None:
    then, after = "now a dead letter", settlement.after
    if after is not None:
        if enforced is not None:
            after = max(after, lifecycle.delay(enforced, attempt=held.job.attempt, chance=0))
        then = f"retrying in {after.total_seconds():.0f} s"
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
