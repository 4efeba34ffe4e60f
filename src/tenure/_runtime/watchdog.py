"""Stop handlers that run out of time or may lose their lease, and report a blocked event loop.

The watchdog runs on the service thread. It escalates step by step. First it sets the cancel flag,
then it raises LeaseLost at the handler's next call. After that, it cancels the task or raises an
exception in the thread, kills the handler's process, and finally ends the child. Code that holds
the GIL blocks this thread too. In that case, the parent, which sees the same deadlines in shared
memory, kills the child.
"""

import asyncio
import sys
import traceback
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

from tenure._clock import boottime
from tenure._runtime.held_leases import HeldLease, HeldLeases, StopReason
from tenure._runtime.lease_board import ACTIVE_PHASES, NEVER, LeaseBoard, Phase
from tenure._services.base import Service, log, log_fields
from tenure.config import Defaults

_DEEPEST = 30
_SHARE = 0.8


class Watchdog(Service):
    name = "watcher"

    def __init__(
        self,
        held_leases: HeldLeases,
        *,
        loop: asyncio.AbstractEventLoop,
        thread: int,
        release: Callable[[HeldLease], None],
        retry_after: Callable[[HeldLease], timedelta],
        on_unstoppable: Callable[[HeldLease, StopReason], None],
        defaults: Defaults,
        board: LeaseBoard | None = None,
    ) -> None:
        super().__init__(min(timedelta(seconds=0.1), defaults.stop_within / 4))
        self._held_leases = held_leases
        self._board = board
        self._loop = loop
        self._thread = thread
        self._release = release
        self._retry_after = retry_after
        self._on_unstoppable = on_unstoppable
        self._blocked_after = defaults.blocked_after.total_seconds()
        self._ping_sent_at = NEVER
        self._heard_at = NEVER
        self.blocked: dict[str, Any] | None = None

    async def tick(self) -> int:
        now = boottime()
        if self._board is not None:
            self._board.record_service_heartbeat(now)
        for held in self._held_leases:
            if held.phase in ACTIVE_PHASES:
                self._watch(held, now)
            elif held.phase is Phase.UNSTARTED and now >= held.trusted_until:
                held.stop(StopReason.LEASE, now)
                self._on_loop(partial(self._release, held))
        self._check_event_loop(now)
        return 0

    def _watch(self, held: HeldLease, now: float) -> None:
        stop_within = held.terms.stop_within
        if held.lease_state.cancel_requested and held.cancel_seen_at == NEVER:
            held.cancel_seen_at = now
            if held.running is not None:
                held.running.cancel_requested()
        if now >= held.trusted_until and held.stopping is not StopReason.LEASE:
            log.warning(
                "job %s: lease could not be renewed, stopping it",
                held.job.id,
                extra=log_fields(held.job),
            )
            held.stop(StopReason.LEASE, now)
        elif held.stopping in (None, StopReason.CANCEL) and now >= held.timeout_at:
            log.warning("job %s: timed out, stopping it", held.job.id, extra=log_fields(held.job))
            held.stop(StopReason.TIMEOUT, now)
        elif held.stopping is None and now >= held.cancel_seen_at + stop_within:
            log.info(
                "job %s: cancel requested, stopping it", held.job.id, extra=log_fields(held.job)
            )
            held.stop(StopReason.CANCEL, now)
        elif held.stopping is not None:
            # If a lease is at risk, act slightly earlier, before the parent kills the child.
            share = _SHARE if held.stopping is StopReason.LEASE else 1
            if now >= held.stop_sent_at + share * stop_within:
                self._force(held, held.stopping)

    def _force(self, held: HeldLease, why: StopReason) -> None:
        """Kill the process of a handler that didn't stop. If it has no process, end the child."""
        running = held.running
        if running is None or running.kill():
            held.stop_sent_at = NEVER
        elif why in (StopReason.LEASE, StopReason.TIMEOUT):
            held.stop_sent_at = NEVER
            if why is StopReason.TIMEOUT:
                held.time_out(self._retry_after(held))
            self._on_unstoppable(held, why)

    def _check_event_loop(self, now: float) -> None:
        """Ping the loop, and report its stack while it doesn't respond."""
        if self._heard_at != NEVER:
            if self.blocked is not None:
                blocked = self._heard_at - self._ping_sent_at
                log.info("event loop unblocked after %.1f s", blocked)
            self._ping_sent_at, self.blocked = NEVER, None
        if self._ping_sent_at == NEVER:
            self._ping_sent_at, self._heard_at = now, NEVER
            self._on_loop(self._alive)
        elif now - self._ping_sent_at >= self._blocked_after:
            stack = self._stack()
            if self.blocked is None:
                log.warning(
                    "event loop blocked for %.1f s; leases are renewed, but no async handler runs. "
                    "Move the blocking call to a thread:\n%s",
                    now - self._ping_sent_at,
                    stack,
                )
            self.blocked = {"seconds": round(now - self._ping_sent_at, 1), "stack": stack}

    def _alive(self) -> None:
        # This is the only thing the loop's thread writes.
        self._heard_at = boottime()
        if self._board is not None:
            self._board.record_loop_heartbeat(self._heard_at)

    def _stack(self) -> str:
        frame = sys._current_frames().get(self._thread)  # noqa: SLF001 - the only way to see it
        stack = traceback.extract_stack(frame)
        # Frames below the handler's own code belong to us and asyncio.
        ours = [n for n, f in enumerate(stack) if f.filename.endswith("_runtime/on_loop.py")]
        return "".join(traceback.format_list(stack[ours[-1] + 1 if ours else 0 :][-_DEEPEST:]))

    def _on_loop(self, call: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(call)
        except RuntimeError:  # the loop is closed: the process is about to end
            self.stop()
