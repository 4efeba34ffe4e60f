"""Rescue jobs whose leases have expired. Any worker can requeue them or mark them as failed."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from tenure._clock import boottime
from tenure._model.lease import Lease, RescuedLease
from tenure._services.base import Service, log
from tenure._store.engine import ServiceConnection
from tenure._store.port import Store
from tenure.config import Defaults

if TYPE_CHECKING:
    from datetime import datetime

_BATCH = 500
# A sweep this slow must have waited for a table lock, during which no worker could renew leases.
_WAITED = 1.0


class HeldHere(Protocol):
    @property
    def at_risk(self) -> Sequence[Lease]:
        """Return leases that may have expired but that this process hasn't released yet."""


class Rescuer(Service):
    """Rescue expired leases above a floor. Once per lease length, check all of them."""

    name = "rescuer"

    def __init__(
        self,
        store: Store,
        link: ServiceConnection,
        *,
        defaults: Defaults,
        held_leases: HeldHere | None = None,
        on_rescued: Sequence[Callable[[Sequence[RescuedLease]], None]] = (),
    ) -> None:
        super().__init__(defaults.rescue_interval)
        self._store = store
        self._link = link
        self._held_leases = held_leases
        self._sweep_from = 0.0
        self._lease = defaults.lease
        self._lag = defaults.late_commit_window
        self._floor: datetime | None = None
        self._from_zero_at = 0.0
        self._on_rescued = on_rescued

    async def tick(self) -> int:
        # Don't sweep for a third of a lease after a failed sweep: a worker that couldn't reach the
        # store stops its handlers and releases their jobs itself, without counting a loss.
        now = boottime()
        if now < self._sweep_from:
            return 0
        self._sweep_from = now + self._lease.total_seconds() / 3
        from_zero = now >= self._from_zero_at
        floor = None if from_zero else self._floor
        kept = [] if self._held_leases is None else self._held_leases.at_risk
        rescues = await self._link.run(
            self._store.leases.rescue(floor=floor, count=_BATCH, kept=kept)
        )
        if boottime() - now < _WAITED:
            self._sweep_from = 0.0
        for notify in self._on_rescued:
            notify(rescues.jobs)
        if from_zero:
            self._from_zero_at = now + self._lease.total_seconds()
            await self._report_overdue()
        if rescues.jobs:
            log.info("rescuer: ended %d expired leases", len(rescues.jobs))
        if len(rescues.jobs) == _BATCH:
            return _BATCH
        self._floor = rescues.now - self._lag
        return 0

    async def _report_overdue(self) -> None:
        for lease in await self._link.run(self._store.leases.overdue(self._lease)):
            log.warning(
                "job %s: lease expired, but its row is locked by pid %s (%s) since %s; "
                "end that transaction",
                lease.job_id,
                lease.pid or "unknown",
                lease.application or "unknown",
                lease.since or "unknown",
                extra={"job": lease.job_id},
            )
