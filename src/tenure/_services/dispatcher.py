"""Brings claimed jobs to a way to run them, as slots become free, and their ends to the settler."""

import asyncio
import random
import traceback
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import timedelta
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from tenure._executors.base import Executor
from tenure._model.lease import Claimed, Claims
from tenure._model.outcome import (
    Ended,
    Error,
    Failed,
    Outcome,
    Released,
    Settlement,
    Succeeded,
)
from tenure._model.queue import EVERY_QUEUE
from tenure._rules import backoff, leasing, lifecycle, prefetch
from tenure._rules.redaction import Redactor
from tenure._services.base import about, log
from tenure._services.board import Phase
from tenure._services.holdings import Held, Holdings
from tenure._services.settler import Settler
from tenure.config import Backoff, Defaults
from tenure.job import boottime
from tenure.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True, kw_only=True)
class Ways:
    """The ways to run a handler that there are here; `process` only under a parent."""

    loop: Executor
    thread: Executor
    process: Executor | None

    def choose(self, held: Held) -> Executor:
        """The way for this job: a suspect's is a process, whatever its task says."""
        if self.process is not None and (held.task.process or held.suspect):
            return self.process
        return self.loop if held.task.is_async else self.thread

    async def close(self) -> None:
        """Let go of threads and processes."""
        for way in (self.process, self.thread, self.loop):
            if way is not None:
                await way.close()


@dataclass(slots=True)
class Notes:
    """What the worker has learnt that others want to know: its row, the claimer, the backoff."""

    strangers: dict[str, None] = field(default_factory=dict)
    backoff: Backoff = field(default_factory=Backoff)
    redactor: Redactor = field(default_factory=Redactor)
    processes: int = 1


class Dispatcher:
    """The slots of one process, and what waits for them. Lives on the loop that runs handlers."""

    def __init__(
        self,
        *,
        slots: int,
        tasks: Registry,
        holdings: Holdings,
        settler: Settler,
        ways: Ways,
        notes: Notes,
        defaults: Defaults,
    ) -> None:
        self._slots = slots
        self._tasks = tasks
        self._holdings = holdings
        self._settler = settler
        self._ways = ways
        self._notes = notes
        self._defaults = defaults
        self._terms = lru_cache(maxsize=256)(partial(leasing.terms, defaults=defaults))
        self._ready: deque[Held] = deque()
        self._running = 0
        self._rate = prefetch.Rate()
        self._no_prefetch_until = 0.0
        self._retired = False
        self._ended_one = asyncio.Event()
        self.on_free: Callable[[], None] = lambda: None
        self.on_started: Callable[[Held], None] = lambda _held: None
        self.on_completed: Callable[[Held], None] = lambda _held: None

    @property
    def running(self) -> int:
        """How many handlers run."""
        return self._running

    @property
    def idle(self) -> bool:
        """Whether nothing runs and nothing waits to."""
        return not self._running and not self._ready

    async def until_idle(self) -> None:
        """Return once nothing runs and nothing waits to."""
        while not self.idle:
            self._ended_one.clear()
            await self._ended_one.wait()

    def room(self, *, coming: int, limited: bool) -> int:
        """How many jobs may be claimed now: free slots, and the prefetch where it is allowed, less
        what is on its way."""
        ahead = self._ahead(limited=limited)
        waiting = len(self._ready) + coming - (self._slots - self._running)
        if waiting > prefetch.refill_at(ahead):
            # Large claims now and then, instead of a small one for every slot that is free.
            return 0
        return min(ahead - waiting, prefetch.AT_ONCE)

    def _ahead(self, *, limited: bool) -> int:
        now = boottime()
        if limited or now < self._no_prefetch_until:
            return 0
        return prefetch.allowed(self._rate.per_second(now))

    def take(self, claims: Claims, asked_at: float) -> None:
        """Take up what was claimed, and start as much of it as there are slots for."""
        taken = []
        for claimed in claims.jobs:
            task = self._tasks.get(claimed.job.task)
            if task is None:
                self._leave_to_others(claimed)
            else:
                terms = self._terms(claimed.lease.ttl, stop_within=task.stop_within)
                taken.append(Held(claimed, task, terms, asked_at))
        self._holdings.add(*taken)
        for held in taken:
            if lifecycle.is_expired(held.job):
                self._end(held, lifecycle.EXPIRED, None)
            else:
                self._ready.append(held)
        if self._retired:
            # This claim was on its way when the worker was told to stop.
            self.give_back_all()
        self._start()
        self._give_back_last_attempts()

    def _leave_to_others(self, claimed: Claimed) -> None:
        """Give back a job of a task that is not known here: a newer release will know it."""
        if claimed.job.task not in self._notes.strangers:
            log.warning(
                "no task %r is known here; it is left to others",
                claimed.job.task,
                extra=about(claimed.job),
            )
            self._notes.strangers[claimed.job.task] = None
        settlement = lifecycle.settle(
            Released(),
            attempt=claimed.job.attempt,
            limit=claimed.job.max_attempts,
            backoff=timedelta(0),
        )
        self._settler.put(None, Ended(claimed.lease, settlement))

    def _start(self) -> None:
        while self._ready and self._running < self._slots and not self._retired:
            held = self._ready.popleft()
            # The watcher may not have looked yet, if this process or its loop stood still.
            if held.stopping is None and boottime() < held.trusted_until:
                self._running += 1
                self._begin(held)
            else:
                self._end(held, Released(), None)

    def _begin(self, held: Held) -> None:
        way = self._ways.choose(held)
        if way is self._ways.process:
            # Its time begins when there is a process, for which it may have to wait.
            held.mark(Phase.WAITING)
        else:
            held.start_clock(boottime())
            held.mark(Phase.STARTED)
        try:
            held.running = way.start(held, self._ended)
        except (OSError, RuntimeError) as error:
            # No more threads or descriptors: somebody else may have some.
            log.error(
                "job %s cannot be started here: %s", held.job.id, error, extra=about(held.job)
            )
            self._running -= 1
            self._end(held, Released(), None)
            return
        if held.stopping is not None:
            # Asked to stop by the keeper's thread between the two lines above.
            held.running.stop(held.stopping)
        self.on_started(held)

    def _ended(self, held: Held, outcome: Outcome | None, excerpt: str | None) -> None:
        now = boottime()
        self._running -= 1
        self._rate.note(1, now)
        held.stop_clock(now)
        held.running = None
        self._end(held, outcome, excerpt)
        self._start()
        self._ended_one.set()
        self.on_free()

    def _end(self, held: Held, outcome: Outcome | None, excerpt: str | None) -> None:
        """Hand a running period that is over to the settler, unless it settled itself. A defect in
        judging it is a failure: the lease would be renewed for ever otherwise."""
        held.mark(Phase.ENDED)
        try:
            self._judge(held, outcome, excerpt)
        except Exception as defect:  # noqa: BLE001 - it is told below, and settled
            log.exception(
                "%s: an end could not be judged; the attempt failed",
                held.job.task,
                extra=about(held.job),
            )
            settlement = lifecycle.settle(
                Failed(Error(type(defect).__qualname__, str(defect), traceback.format_exc())),
                attempt=held.job.attempt,
                limit=held.job.max_attempts,
                backoff=self._waits(self._defaults.backoff, held),
            )
            self._settler.put(held, Ended(held.lease, settlement, excerpt))

    def _judge(self, held: Held, outcome: Outcome | None, excerpt: str | None) -> None:
        if held.grip.settled:
            if isinstance(outcome, Failed):
                error = self._notes.redactor.error(outcome.error, of=held.job)
                log.warning(
                    "job %s was completed by its transaction, and then its handler failed: %s\n%s",
                    held.job.id,
                    error.message,
                    error.trace,
                    extra=about(held.job),
                )
            self._holdings.drop(held)
            self.on_completed(held)
            return
        if outcome is None:
            self._settler.forfeit(held)
            return
        settlement = lifecycle.settle(
            outcome,
            attempt=held.job.attempt,
            limit=held.job.max_attempts,
            backoff=self.retry_after(held) if isinstance(outcome, Failed) else timedelta(0),
        )
        if isinstance(outcome, Failed):
            # Why arguments do not fit is told by quoting them; the attempt has it all.
            unread = outcome.reason == "undecodable"
            error = self._notes.redactor.error(outcome.error, of=held.job, whole=unread)
            _report(held, error, settlement)
        succeeded = isinstance(outcome, Succeeded)
        follow_ups = held.grip.follow_ups if succeeded else []
        self._settler.put(
            held,
            Ended(held.lease, settlement, excerpt),
            follow_ups=follow_ups,
            handed_over=succeeded and held.grip.handed_over,
        )

    def retry_after(self, held: Held) -> timedelta:
        """How long its job waits if this attempt fails."""
        return self._waits(held.task.backoff or self._notes.backoff, held)

    def _waits(self, policy: Backoff, held: Held) -> timedelta:
        chance = random.random()  # noqa: S311 - spreads retries
        return backoff.delay(policy, attempt=held.job.attempt, chance=chance)

    def _give_back_last_attempts(self) -> None:
        """Let no job wait here on its last attempt: lost, it would fail without having run."""
        last = [held for held in self._ready if held.job.attempt >= held.job.max_attempts]
        if last:
            self._no_prefetch_until = boottime() + 5 * self._defaults.poll.total_seconds()
            for held in last:
                self.give_back(held)

    def give_back(self, held: Held) -> None:
        """Release a job that has not started."""
        if held in self._ready:
            self._ready.remove(held)
            self._end(held, Released(), None)
            self._ended_one.set()

    def give_back_surplus(self, *, limited: bool) -> None:
        """Release what came last and waits beyond what may be claimed ahead."""
        surplus = len(self._ready) - self._ahead(limited=limited)
        for held in list(self._ready)[len(self._ready) - surplus :] if surplus > 0 else ():
            self.give_back(held)

    def give_back_from(self, queues: Collection[str]) -> None:
        """Release what has not started and came from these queues, which are paused or limited."""
        for held in list(self._ready):
            if held.job.queue in queues or EVERY_QUEUE in queues:
                self.give_back(held)

    def retire(self) -> None:
        """Start nothing any more, and release what has not started."""
        self._retired = True
        self.give_back_all()

    def give_back_all(self) -> None:
        """Release everything that has not started."""
        for held in list(self._ready):
            self.give_back(held)


def _report(held: Held, error: Error, settlement: Settlement) -> None:
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
        extra=about(held.job),
    )
