"""Send heartbeats with the worker's state and read the runtime settings."""

import resource
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from tenure._clock import boottime
from tenure._model.worker import HeartbeatResult, NewWorker, WorkerRow, WorkerState
from tenure._rules import runtime_settings
from tenure._rules.redaction import Redactor
from tenure._runtime.dispatcher import WorkerSettings
from tenure._runtime.held_leases import HeldLeases
from tenure._runtime.watchdog import Watchdog
from tenure._services.base import Service
from tenure._store.engine import ServiceConnection
from tenure._store.port import Store
from tenure._store.steps import Op
from tenure.config import Defaults

_LOOK_AROUND_EVERY = 6
_STATM = Path("/proc/self/statm")


class Heartbeat(Service):
    """Send heartbeats on the service thread, so a blocked loop is reported in time."""

    name = "presence"

    def __init__(
        self,
        store: Store,
        link: ServiceConnection,
        *,
        me: NewWorker,
        held_leases: HeldLeases,
        watchdog: Watchdog,
        settings: WorkerSettings,
        on_drain: Callable[[], None],
        defaults: Defaults,
    ) -> None:
        super().__init__(defaults.heartbeat_interval)
        self._store = store
        self._link = link
        self._me = me
        self._held_leases = held_leases
        self._watchdog = watchdog
        self._settings = settings
        self._on_drain = on_drain
        self._defaults = defaults
        self._heartbeat_count = 0
        self.state = WorkerState.ACTIVE
        self.last_heartbeat_at = 0.0

    async def tick(self) -> int:
        """Send one heartbeat. Every sixth time, also read settings and count peers."""
        await self._send_heartbeat()
        if self._heartbeat_count % _LOOK_AROUND_EVERY == 0:
            changed = await self._link.run(self._store.settings.changed())
            self._settings.backoff = runtime_settings.backoff(changed, self._defaults.backoff)
            self._settings.enforced_backoff = runtime_settings.enforced_backoff(changed)
            self._settings.redactor = Redactor(changed.get("redact", ()))
            workers = await self._link.run(self._store.workers.list())
            self._settings.peer_count = self._count_peers(workers)
        self._heartbeat_count += 1
        return 0

    async def _send_heartbeat(self) -> None:
        meta: dict[str, Any] = {}
        if (blocked := self._watchdog.blocked) is not None:
            meta["blocked"] = blocked
        if self._settings.unknown_tasks:
            meta["unknown_tasks"] = list(self._settings.unknown_tasks)

        if (memory := _memory()) is not None:
            meta["memory"] = memory

        def heartbeat() -> Op[HeartbeatResult]:
            return self._store.workers.heartbeat(
                self._me.id, state=self.state, running=self._held_leases.running, meta=meta or None
            )

        answer = await self._link.run(heartbeat())
        if not answer.known:
            await self._link.run(self._store.workers.register(self._me))
            await self._link.run(heartbeat())
        self.last_heartbeat_at = boottime()
        if answer.drain_requested and self.state is WorkerState.ACTIVE:
            self._on_drain()

    def _count_peers(self, workers: Sequence[WorkerRow]) -> int:
        fresh = 3 * self._defaults.heartbeat_interval + timedelta(seconds=1)
        mine = set(self._me.queues)
        return sum(
            worker.state is not WorkerState.OFFLINE
            and worker.heartbeat_age < fresh
            and bool(mine & set(worker.queues))
            for worker in workers
        )

    async def sign_off(self) -> None:
        self.state = WorkerState.OFFLINE
        try:
            await self._send_heartbeat()
        finally:
            await self._link.close()


def _memory() -> int | None:
    """Return this process's resident memory in bytes, if known."""
    try:
        return int(_STATM.read_text().split()[1]) * resource.getpagesize()
    except (OSError, ValueError, IndexError):
        return None
