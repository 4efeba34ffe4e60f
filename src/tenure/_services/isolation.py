"""When a process holds one suspect and nothing else, and when it makes room for one.

A suspect that takes down more than its own process is claimed only by a process that holds nothing
(rule 8). A busy process never does by itself, so it stops claiming for a while if such a job waits.
"""

from collections.abc import Sequence

from tenure._rules.lifecycle import ALONE_FROM, MAX_WORKER_LOSSES
from tenure._services.holdings import Holdings
from tenure._store.engine import AsyncRunner
from tenure._store.port import Store
from tenure.config import Defaults
from tenure.job import boottime


class Isolation:
    """Keeps a dangerous suspect apart from everything else that this process holds."""

    def __init__(
        self,
        store: Store,
        holdings: Holdings,
        *,
        queues: Sequence[str],
        has_processes: bool,
        defaults: Defaults,
    ) -> None:
        self._store = store
        self._holdings = holdings
        self._queues = queues
        # Where a job cannot have a process of its own, every suspect must be alone.
        self._alone_from = ALONE_FROM if has_processes else 0
        self._lease = defaults.lease.total_seconds()
        self._free_at = boottime()
        self._makes_room_until = 0.0

    @property
    def forbids_claims(self) -> bool:
        """Whether nothing may be claimed now: a suspect is alone here, or is to be."""
        if not len(self._holdings):
            return False
        suspects = list(self._holdings.suspects)
        if any(held.job.worker_losses >= self._alone_from for held in suspects):
            return True
        return boottime() < self._makes_room_until

    def limit(self, wanted: int) -> int:
        """The number of worker losses from which on a claim leaves suspects to others, while so
        many jobs are asked for already."""
        if wanted or len(self._holdings):
            return self._alone_from
        self._free_at = boottime()
        self._makes_room_until = 0.0
        return MAX_WORKER_LOSSES

    async def look(self, link: AsyncRunner) -> None:
        """After a lease without a moment that was free, see whether a suspect waits for one, and
        make room for up to a lease; then work goes on for a lease at least."""
        now = boottime()
        if now < self._free_at + self._lease or not len(self._holdings):
            return
        waits = await link.run(self._store.suspect_waits(self._queues, self._alone_from))
        self._free_at = now + self._lease
        if waits:
            self._makes_room_until = now + self._lease
