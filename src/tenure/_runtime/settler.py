"""Settle ended attempts: a single one immediately, many in a batch."""

import asyncio
import itertools
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from tenure._clock import boottime
from tenure._model.attempt import AttemptOutcome
from tenure._model.job import NewJob, State
from tenure._model.lease import SettleResult, SettleStatus
from tenure._model.outcome import COMPLETED, Settlement, SettleRequest
from tenure._rules.sanitize import as_unstorable, sanitized
from tenure._rules.sealing import NOT_SEALING, Sealing
from tenure._runtime.events import RuntimeEvents
from tenure._runtime.held_leases import HeldLease, HeldLeases
from tenure._services.base import Service, log, log_fields
from tenure._store.engine import ServiceConnection
from tenure._store.port import Store
from tenure._store.steps import atomically
from tenure.errors import (
    CodecError,
    Error,
    InvalidValue,
    LeaseLost,
    PayloadError,
    QueryFailed,
)

_BATCH = 500
# Pauses before retrying a locked row.
_BUSY, _BUSY_LONGEST = 0.05, 1.0


@dataclass(slots=True, eq=False)
class _Item:
    held: HeldLease | None
    ended: SettleRequest
    follow_ups: Sequence[NewJob] = ()
    completed_in_caller_transaction: bool = False
    tries: int = 0
    again_at: float = 0.0

    @property
    def about(self) -> dict[str, str | int]:
        if self.held is not None:
            return log_fields(self.held.job)
        return {"job": self.ended.lease.job_id, "token": self.ended.lease.token}

    @property
    def plain(self) -> bool:
        return not self.follow_ups and not self.completed_in_caller_transaction


class Settler(Service):
    """Settle leases in the store.

    Each settlement is kept until the store responds. Sending one twice is harmless, and one that
    arrives too late is rejected.
    """

    name = "settler"

    def __init__(
        self,
        store: Store,
        link: ServiceConnection,
        held_leases: HeldLeases,
        *,
        events: RuntimeEvents,
        sealing: Sealing = NOT_SEALING,
    ) -> None:
        super().__init__(timedelta(seconds=1))
        self._store = store
        self._link = link
        self._held_leases = held_leases
        self._items: deque[_Item] = deque()
        self._completed: deque[HeldLease] = deque()
        self._empty = asyncio.Event()
        self._empty.set()
        self._events = events
        self._sealing = sealing

    def put(
        self,
        held: HeldLease | None,
        ended: SettleRequest,
        *,
        follow_ups: Sequence[NewJob] = (),
        completed_in_caller_transaction: bool = False,
    ) -> None:
        """Settle soon. If the handler says that it completed the job itself, check that."""
        self._add(_Item(held, ended, follow_ups, completed_in_caller_transaction))

    def put_completed(self, held: HeldLease) -> None:
        # This is for jobs without a key, result or log, which share one statement and one event.
        self._completed.append(held)
        self._empty.clear()
        self.run_soon()

    def _add(self, item: _Item) -> None:
        self._items.append(item)
        self._empty.clear()
        self.run_soon()

    async def emptied(self) -> None:
        await self._empty.wait()

    async def tick(self) -> int:
        completed = await self._complete() if self._completed else 0
        now = boottime()
        batch = list(itertools.islice((i for i in self._items if i.again_at <= now), _BATCH))
        if not batch:
            return completed or await self._wait(now)
        plain = [item for item in batch if item.plain]
        if plain:
            over: list[_Item] = []
            answers = await self._link.run(
                self._store.settlement.settle([self._sealed(item, item.ended) for item in plain])
            )
            for item, answer in zip(plain, answers, strict=True):
                if self._answered(item, answer):
                    over.append(item)
            self._held_leases.drop(*(item.held for item in over if item.held is not None))
        for item in batch:
            if item.plain:
                continue
            if not self._answered(item, await self._settle_alone(item)):
                # This attempt has already waited for a lock, so newly ended attempts go first.
                break
            if item.held is not None:
                self._held_leases.drop(item.held)
        self._note_whether_empty()
        return completed + len(batch)

    async def _complete(self) -> int:
        """Complete a batch. The general statement settles whatever the short one didn't."""
        batch = list(itertools.islice(self._completed, _BATCH))
        leases = [held.lease for held in batch]
        left = await self._link.run(self._store.settlement.complete(leases))
        for _ in batch:
            self._completed.popleft()
        if left:
            unsettled = set(left)
            for held in batch:
                if held.lease in unsettled:
                    self._add(_Item(held, SettleRequest(held.lease, COMPLETED)))
            batch = [held for held in batch if held.lease not in unsettled]
        for notify in self._events.succeeded:
            notify(batch)
        self._held_leases.drop(*batch)
        self._note_whether_empty()
        return len(leases)

    def _note_whether_empty(self) -> None:
        if not self._items and not self._completed:
            self._empty.set()

    async def _wait(self, now: float) -> int:
        if self._items:
            await self.sleep(min(item.again_at for item in self._items) - now)
        else:
            self._note_whether_empty()
        return len(self._items)

    def _answered(self, item: _Item, answer: SettleResult) -> bool:
        """Process the store's response. Return False if the row is locked and must be retried."""
        self._items.remove(item)
        if answer.answer is SettleStatus.BUSY:
            pause = min(_BUSY_LONGEST, _BUSY * 2.0 ** min(item.tries, 10))
            item.tries, item.again_at = item.tries + 1, boottime() + pause
            self._items.append(item)
            return False
        refused = answer.answer is SettleStatus.REFUSED
        if refused:
            log.warning(
                "job %s: result refused, its lease had already ended as %s",
                item.ended.lease.job_id,
                answer.ending or "unknown",
                extra=item.about,
            )
        if item.held is not None:
            state, requested = answer.state, item.ended.settlement.state
            if state is State.FAILED and requested is State.COMPLETED and not refused:
                _report(item.held, sanitized(item.ended))
            for notify in self._events.settled:
                notify(item.held, item.ended, answer)
        return True

    async def _settle_alone(self, item: _Item) -> SettleResult:
        try:
            if item.completed_in_caller_transaction:
                return await self._verify(item, item.ended)
            return await self._settle_followed(item, item.ended)
        except QueryFailed as error:
            if not error.is_conflict:
                raise
            return SettleResult(SettleStatus.BUSY)

    async def _settle_followed(self, item: _Item, ended: SettleRequest) -> SettleResult:
        # Use one transaction, so that no follow-up is enqueued if the result can't be stored.
        fit = sanitized(ended)
        sealed = self._sealed(item, fit)
        if sealed.settlement.state is not ended.settlement.state:
            return await self._settle_one(item, fit)
        op = self._store.settlement.settle_within(
            sealed.lease, sealed.settlement, also=item.follow_ups, log=sealed.log, hurried=True
        )
        try:
            await self._link.run(atomically(op))
        except LeaseLost:
            # The lease is lost, or this was sent before but got no response. The plain form tells
            # which, and keeps the result as evidence.
            return await self._settle_one(item, ended)
        except (PayloadError, InvalidValue) as error:
            return await self._settle_one(item, as_unstorable(ended, str(error)))
        return SettleResult(SettleStatus.SETTLED)

    async def _settle_one(self, item: _Item, ended: SettleRequest) -> SettleResult:
        sealed = self._sealed(item, ended)
        [answer] = await self._link.run(self._store.settlement.settle([sealed]))
        if answer.answer is not SettleStatus.BUSY:
            refused = answer.answer is SettleStatus.REFUSED
            if item.held is not None and ended is not item.ended and not refused:
                _report(item.held, ended)
            item.ended = ended
        return answer

    def _sealed(self, item: _Item, ended: SettleRequest) -> SettleRequest:
        """Seal what the handler wrote. If no lease is held, the texts are Tenure's own."""
        if item.held is None or not self._sealing.has_codec:
            return ended
        task = item.held.job.task
        try:
            return self._sealing.ending(ended, task=task)
        except (CodecError, PayloadError) as error:
            return self._sealing.ending(as_unstorable(ended, str(error)), task=task)

    async def _verify(self, item: _Item, ended: SettleRequest) -> SettleResult:
        try:
            await self._link.run(self._store.settlement.check(ended.lease))
        except LeaseLost:
            return SettleResult(SettleStatus.REPEATED)
        error = Error(
            "NotCommitted", "the handler completed its job in a transaction that was not committed"
        )
        failed = Settlement(State.QUEUED, AttemptOutcome.FAILED, error=error, after=timedelta(0))
        return await self._settle_one(item, SettleRequest(ended.lease, failed, ended.log))

    async def close(self) -> None:
        await self._link.close()


def _report(held: HeldLease, ended: SettleRequest) -> None:
    """Log a failed attempt whose handler had returned."""
    error = ended.settlement.error
    message = f"{error.type}: {error.message}" if error else "the store refused its result"
    log.warning(
        "job %s (%s): attempt %d of %d failed: %s",
        held.job.id,
        held.job.task,
        held.job.attempt,
        held.job.max_attempts,
        message,
        extra=log_fields(held.job),
    )
