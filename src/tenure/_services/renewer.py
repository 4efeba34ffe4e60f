"""Renews leases until they are settled. On a thread and a connection of its own (see `keeper`),
so that a handler that blocks the event loop keeps its lease."""

from datetime import timedelta

from tenure._model.lease import Renewal, Renewed
from tenure._services.base import Service, about, log
from tenure._services.board import NEVER, Phase
from tenure._services.holdings import Held, Holdings, Why
from tenure._store.engine import Link
from tenure._store.port import Store
from tenure.config import Defaults
from tenure.job import boottime

_BATCH = 1000


class Renewer(Service):
    """Extends what is held, a third of a lease after it was asked for."""

    name = "renewer"

    def __init__(self, store: Store, link: Link, holdings: Holdings, *, defaults: Defaults) -> None:
        # A try that failed is made good at once: the trust runs out meanwhile.
        super().__init__(
            defaults.lease / 30, retry=defaults.lease / 300, longest=defaults.lease / 10
        )
        self._store = store
        self._link = link
        self._holdings = holdings
        self._lease = self._shortest = defaults.lease
        self.renewed: int = 0
        self.late: int = 0

    async def tick(self) -> int:
        """Renew what is due."""
        now = boottime()
        self._hurry()
        due = [held for held in self._holdings if _due(held, now)][:_BATCH]
        if not due:
            if self._holdings:
                await self._link.open()
            return 0
        due.sort(key=lambda held: held.lease.job_id)
        asked_at = boottime()
        answers = await self._link.run(
            self._store.renew([held.lease for held in due], began=[held.begun for held in due])
        )
        for held, answer in zip(due, answers, strict=True):
            self._answered(held, answer, asked_at)
        return len(due) if len(due) == _BATCH else 0

    def _hurry(self) -> None:
        """Let a renewal take no longer than the shortest lease that is held allows."""
        shortest = min((held.lease.ttl for held in self._holdings), default=self._lease)
        if shortest != self._shortest:
            self._shortest = shortest
            self._link.hurry(deadline(shortest))

    def _rest(self) -> float:
        """Until the next lease is due, where that is sooner than the next look; what is due already
        is locked by somebody, or could not be asked for."""
        least, rest = self._retry, super()._rest()
        if self._failures:
            return max(min(rest, self._shortest.total_seconds() / 10), least)
        due = min((held.renew_at for held in self._holdings if _wanted(held)), default=NEVER)
        return min(rest, max(due - boottime(), least))

    def _answered(self, held: Held, answer: Renewal, asked_at: float) -> None:
        if answer.answer is Renewed.RENEWED:
            self.renewed += 1
            # Due after a third of the lease.
            self.late += asked_at > held.renew_at + held.terms.renew_after / 2
            held.extend(asked_at)
            held.grip.cancel_requested |= answer.cancel_requested
        elif answer.answer is Renewed.LOST and held.grip.handed_over:
            # Its own transaction has completed it: nothing is left to renew or to settle.
            held.grip.settled = True
        elif answer.answer is Renewed.LOST and not (
            held.phase is Phase.ENDED or held.grip.settled  # while this was on its way
        ):
            log.warning(
                "job %s: the lease is lost; it is stopped", held.job.id, extra=about(held.job)
            )
            held.stop(Why.LEASE, boottime())

    async def close(self) -> None:
        """Close the connection."""
        await self._link.close()


def _wanted(held: Held) -> bool:
    return not (held.grip.lost or held.grip.settled)


def _due(held: Held, now: float) -> bool:
    return _wanted(held) and held.renew_at <= now


def deadline(lease: timedelta) -> timedelta:
    """How long a renewal may take before it is tried on a new connection."""
    return min(timedelta(seconds=15), lease / 6)
