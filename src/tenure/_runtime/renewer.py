"""Renew leases until their jobs are settled.

The renewer runs on the service thread and has its own connection, so leases are renewed even while
a handler blocks the event loop.
"""

from datetime import timedelta

from tenure._clock import boottime
from tenure._model.lease import RenewResult, RenewStatus
from tenure._runtime.held_leases import HeldLease, HeldLeases, StopReason
from tenure._runtime.lease_board import NEVER, Phase
from tenure._services.base import Service, log, log_fields
from tenure._store.engine import ServiceConnection
from tenure._store.port import Store
from tenure.config import Defaults

_BATCH = 1000


class Renewer(Service):
    """Renew each lease once a third of it has passed."""

    name = "renewer"

    def __init__(
        self, store: Store, link: ServiceConnection, held_leases: HeldLeases, *, defaults: Defaults
    ) -> None:
        # Retry immediately: the lease is running out.
        super().__init__(
            defaults.lease / 30, retry=defaults.lease / 300, longest=defaults.lease / 10
        )
        self._store = store
        self._link = link
        self._held_leases = held_leases
        self._lease = self._shortest = defaults.lease
        self.renewed: int = 0
        self.late: int = 0

    async def tick(self) -> int:
        now = boottime()
        self._hurry()
        due = [held for held in self._held_leases if _due(held, now)][:_BATCH]
        if not due:
            if self._held_leases:
                await self._link.open()
            return 0
        due.sort(key=lambda held: held.lease.job_id)
        sent_at = boottime()
        answers = await self._link.run(
            self._store.leases.renew(
                [held.lease for held in due], began=[held.begun for held in due]
            )
        )
        for held, answer in zip(due, answers, strict=True):
            self._answered(held, answer, sent_at)
        return len(due) if len(due) == _BATCH else 0

    def _hurry(self) -> None:
        """Set the renewal deadline based on the shortest lease held."""
        shortest = min((held.lease.ttl for held in self._held_leases), default=self._lease)
        if shortest != self._shortest:
            self._shortest = shortest
            self._link.set_deadline(deadline(shortest))

    def _next_delay(self) -> float:
        # If a lease is already due for renewal, its row is locked or its last renewal failed.
        least, rest = self._retry, super()._next_delay()
        if self._failures:
            return max(min(rest, self._shortest.total_seconds() / 10), least)
        due = min((held.renew_at for held in self._held_leases if _wanted(held)), default=NEVER)
        return min(rest, max(due - boottime(), least))

    def _answered(self, held: HeldLease, answer: RenewResult, sent_at: float) -> None:
        if answer.answer is RenewStatus.RENEWED:
            self.renewed += 1
            # Due after a third of the lease.
            self.late += sent_at > held.renew_at + held.terms.renew_after / 2
            held.extend(sent_at)
            held.lease_state.cancel_requested |= answer.cancel_requested
        elif answer.answer is RenewStatus.LOST and held.lease_state.completed_in_caller_transaction:
            # The handler's own transaction completed the job, so there's nothing to renew or
            # settle.
            held.lease_state.settled = True
        elif answer.answer is RenewStatus.LOST and not (
            held.phase is Phase.ENDED or held.lease_state.settled  # in the meantime
        ):
            log.warning("job %s: lease lost, stopping it", held.job.id, extra=log_fields(held.job))
            held.stop(StopReason.LEASE, boottime())

    async def close(self) -> None:
        await self._link.close()


def _wanted(held: HeldLease) -> bool:
    return not (held.lease_state.lost or held.lease_state.settled)


def _due(held: HeldLease, now: float) -> bool:
    return _wanted(held) and held.renew_at <= now


def deadline(lease: timedelta) -> timedelta:
    """Return how long a renewal may take before it is retried on a new connection."""
    return min(timedelta(seconds=15), lease / 6)
