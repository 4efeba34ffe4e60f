"""Remote workers that this server heard from recently, and how many leases they hold."""

import asyncio
from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from tenure._clock import boottime
from tenure._model.ids import WorkerId
from tenure._model.worker import NewWorker
from tenure._rules import runtime_settings
from tenure._services.base import Service
from tenure._store.engine import ServiceConnection
from tenure._store.port import Store
from tenure.config import Defaults
from tenure.errors import QuotaExceeded

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenure.config import Backoff

_LOOK_AROUND_EVERY = 6
_BATCH = 1000
# A new worker is registered before the next heartbeat, along with any others waiting.
_INTRODUCED_WITHIN = 0.25


@dataclass(slots=True)
class RemoteWorker:
    """A remote worker. `held` counts leases it got from this server and hasn't settled here."""

    me: NewWorker
    heard_at: float
    registered: bool = False
    draining: bool = False
    held: int = 0
    holder: str = ""


class RemotePresence(Service):
    """Send one heartbeat for all remote workers. Read drain requests and the backoff setting."""

    name = "presence"

    def __init__(self, store: Store, link: ServiceConnection, *, defaults: Defaults) -> None:
        super().__init__(defaults.heartbeat_interval)
        self._store = store
        self._link = link
        self._defaults = defaults
        self._guests: dict[WorkerId, RemoteWorker] = {}
        self._sessions: Counter[str] = Counter()
        self._heartbeats = 0
        self._introducing: asyncio.TimerHandle | None = None
        self.backoff: Backoff = defaults.backoff
        self.is_waiting: Callable[[WorkerId], bool] = lambda _worker: False

    def register(
        self, me: NewWorker, *, holder: str = "", max_sessions: float | None = None
    ) -> RemoteWorker:
        """Record that a worker was heard from. Raise QuotaExceeded if its holder has too many."""
        if (guest := self._guests.get(me.id)) is None:
            if max_sessions is not None and self._sessions[holder] >= max_sessions:
                raise QuotaExceeded(
                    f"this access token has {max_sessions:,.0f} worker sessions, which is its "
                    "quota; send `session` with each acquire, or raise the quota sessions",
                    self.forget_after.total_seconds(),
                )
            guest = self._guests[me.id] = RemoteWorker(me, boottime(), holder=holder)
            self._sessions[holder] += 1
        guest.heard_at = boottime()
        if (guest.me.queues, guest.me.slots) != (me.queues, me.slots):
            guest.me, guest.registered = me, False
        if not guest.registered and self._introducing is None:
            loop = asyncio.get_running_loop()
            self._introducing = loop.call_later(_INTRODUCED_WITHIN, self.run_soon)
        return guest

    def touch(self, worker: WorkerId, *, settled: int = 0) -> None:
        """Record that a worker renewed, reported or settled."""
        if (guest := self._guests.get(worker)) is not None:
            guest.heard_at = boottime()
            guest.held = max(guest.held - settled, 0)

    async def tick(self) -> int:
        """Send one heartbeat for all workers, and forget those not seen for a long time."""
        self._introducing = None
        oldest = boottime() - self.forget_after.total_seconds()
        for worker, guest in list(self._guests.items()):
            if guest.heard_at < oldest and not self.is_waiting(worker):
                del self._guests[worker]
                self._sessions[guest.holder] -= 1
        self._sessions = +self._sessions  # Drop holders without sessions.
        workers = list(self._guests.values())
        for start in range(0, len(workers), _BATCH):
            await self._heartbeat(workers[start : start + _BATCH])
        if self._heartbeats % _LOOK_AROUND_EVERY == 0:
            changed = await self._link.run(self._store.settings.changed())
            self.backoff = runtime_settings.backoff(changed, self._defaults.backoff)
        self._heartbeats += 1
        return 0

    @property
    def forget_after(self) -> timedelta:
        """How long a worker's session counts after it was last heard."""
        # A worker with a long lease is heard from only when it renews, which is rare.
        return max(6 * self._defaults.heartbeat_interval, self._defaults.lease)

    async def _heartbeat(self, guests: list[RemoteWorker]) -> None:
        running = {guest.me.id: guest.held for guest in guests}
        known = await self._link.run(self._store.workers.heartbeat_many(running))
        for guest in guests:
            guest.draining = known.get(guest.me.id, False)
            if guest.me.id not in known or not guest.registered:
                await self._link.run(self._store.workers.register(guest.me))
                guest.registered = True

    async def close(self) -> None:
        await self._link.close()
