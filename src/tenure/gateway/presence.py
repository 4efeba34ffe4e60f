"""Workers elsewhere, as far as this server knows them: who was heard of lately, with how much."""

import asyncio
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

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenure.config import Backoff

_LOOK_AROUND_EVERY = 6
_BATCH = 1000
# A worker that is new is told of before the next heartbeat, together with those that come with it.
_INTRODUCED_WITHIN = 0.25


@dataclass(slots=True)
class RemoteWorker:
    """One of them. `held` are the leases that it was given here and has not settled here."""

    me: NewWorker
    heard_at: float
    registered: bool = False
    draining: bool = False
    held: int = 0


class RemotePresence(Service):
    """Beats for all of them in one statement; brings back who was asked to drain, and the backoff
    that was set at run time."""

    name = "presence"

    def __init__(self, store: Store, link: ServiceConnection, *, defaults: Defaults) -> None:
        super().__init__(defaults.heartbeat_interval)
        self._store = store
        self._link = link
        self._defaults = defaults
        self._guests: dict[WorkerId, RemoteWorker] = {}
        self._heartbeats = 0
        self._introducing: asyncio.TimerHandle | None = None
        self.backoff: Backoff = defaults.backoff
        self.is_waiting: Callable[[WorkerId], bool] = lambda _worker: False

    def register(self, me: NewWorker) -> RemoteWorker:
        """It asks for work."""
        guest = self._guests.setdefault(me.id, RemoteWorker(me, boottime()))
        guest.heard_at = boottime()
        if (guest.me.queues, guest.me.slots) != (me.queues, me.slots):
            guest.me, guest.registered = me, False
        if not guest.registered and self._introducing is None:
            loop = asyncio.get_running_loop()
            self._introducing = loop.call_later(_INTRODUCED_WITHIN, self.run_soon)
        return guest

    def touch(self, worker: WorkerId, *, settled: int = 0) -> None:
        """It says something about its leases."""
        if (guest := self._guests.get(worker)) is not None:
            guest.heard_at = boottime()
            guest.held = max(guest.held - settled, 0)

    async def tick(self) -> int:
        """Send one heartbeat for all workers, and forget those that were silent for long."""
        self._introducing = None
        oldest = boottime() - self._forget_after.total_seconds()
        for worker, guest in list(self._guests.items()):
            if guest.heard_at < oldest and not self.is_waiting(worker):
                del self._guests[worker]
        everybody = list(self._guests.values())
        for start in range(0, len(everybody), _BATCH):
            await self._heartbeat(everybody[start : start + _BATCH])
        if self._heartbeats % _LOOK_AROUND_EVERY == 0:
            changed = await self._link.run(self._store.settings.changed())
            self.backoff = runtime_settings.backoff(changed, self._defaults.backoff)
        self._heartbeats += 1
        return 0

    @property
    def _forget_after(self) -> timedelta:
        # A worker with a long lease speaks seldom: when it renews.
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
        """Close the connection."""
        await self._link.close()
