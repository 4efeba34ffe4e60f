"""Declare the program's schedules and fire due ones, on any worker, without a leader."""

import logging
import random
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tenure._clock import boottime
from tenure._model.schedule import SCHEDULES_CHANGED
from tenure._services.base import Service, log
from tenure._store.engine import ServiceConnection
from tenure._store.port import Store
from tenure.config import Defaults
from tenure.errors import InvalidValue, PayloadError, QueryFailed

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from tenure._model.schedule import DeclareResult, FireResult, NewSchedule

_BATCH = 100
# This spreads schedulers out, so that one fires a tick and the others find it already fired.
_SPREAD = 0.005
_SHORTEST_SLEEP = 0.001
_AFTER_ANOTHER = 0.01
_DECLARE_AGAIN = 5.0
_NAMED = 10


class Scheduler(Service):
    name = "scheduler"

    def __init__(
        self,
        store: Store,
        link: ServiceConnection,
        *,
        program: str,
        version: Sequence[int],
        schedules: "Sequence[NewSchedule]",
        defaults: Defaults,
    ) -> None:
        super().__init__(defaults.poll)
        self._store = store
        self._link = link
        self._program = program
        self._version = version
        self._schedules = list(schedules)
        self._lag = defaults.late_commit_window
        self._sweep = defaults.rescue_interval.total_seconds()
        self._floor: datetime | None = None
        self._from_zero_at = 0.0
        self._declared = False
        self._refused = 0
        self._declare_at = 0.0
        self._due_at: float | None = None
        self._passed_over = 0
        self._unread: set[str] = set()
        self._reported_unread: dict[str, str] = {}
        self.ticks: int = 0
        self.jobs: int = 0

    def wake(self, queue: str = "") -> None:
        if queue in ("", SCHEDULES_CHANGED):
            self._from_zero_at = 0.0
            self.run_soon()

    async def tick(self) -> int:
        if not self._declared and boottime() >= self._declare_at:
            await self._declare()
        # Read the clock before the request, so that after a slow response the next tick is early,
        # never late.
        sent_at = boottime()
        if sent_at >= self._from_zero_at:
            self._floor, self._from_zero_at = None, sent_at + self._sweep
            self._unread.clear()
        op = self._store.ticks.fire(count=_BATCH, floor=self._floor, unread=self._unread)
        firing = await self._link.run(op)
        self._learn(firing, sent_at)
        self.ticks += firing.ticks
        self.jobs += firing.jobs
        if firing.ticks:
            log.debug("scheduler: %d ticks created %d jobs", firing.ticks, firing.jobs)
        self._skip_unread(firing.skipped_queues)
        return firing.ticks or len(firing.skipped_queues)

    def _skip_unread(self, unread: "Mapping[str, str]") -> None:
        """Skip schedules that can't be read here until the next full check, and log it once."""
        self._unread.update(unread)
        for name, why in unread.items():
            if self._reported_unread.get(name) != why:
                self._reported_unread[name] = why
                log.error(
                    "scheduler: cannot read schedule %s, leaving it to other workers: %s; if they "
                    "know the time zone, install or update tzdata here",
                    name,
                    why,
                )

    def _learn(self, firing: "FireResult", sent_at: float) -> None:
        """Compute the next check's time and floor, allowing for transactions that commit late."""
        due = firing.now if firing.next_at is None else min(firing.next_at, firing.now)
        self._floor = due - self._lag
        self._due_at = None
        if firing.next_at is not None:
            self._due_at = sent_at + (firing.next_at - firing.now).total_seconds()
        # A due tick that wasn't fired here is being fired elsewhere.
        is_due = firing.next_at is not None and firing.next_at <= firing.now
        self._passed_over = self._passed_over + 1 if is_due and not firing.ticks else 0

    async def _declare(self) -> None:
        """Declare this program's schedules.

        If the database refuses, keep firing the existing ones.
        """
        op = self._store.schedules.declare(self._program, self._version, self._schedules)
        try:
            declaring = await self._link.run(op)
        except (InvalidValue, PayloadError, QueryFailed) as error:
            self._refused += 1
            self._declare_at = boottime() + _DECLARE_AGAIN
            level = logging.ERROR if self._refused == 1 else logging.DEBUG
            log.log(
                level, "scheduler: cannot declare the schedules of %s: %s", self._program, error
            )
        else:
            self._declared = True
            self._log_declared(declaring)

    def _log_declared(self, declaring: "DeclareResult") -> None:
        declared = {
            "created": declaring.made,
            "changed": declaring.changed,
            "retired": declaring.retired,
        }
        for action, names in declared.items():
            if names:
                log.info("scheduler: %s: %s by %s", _listed(names), action, self._program)
        if not declaring.newer:
            return
        newer = _listed(declaring.newer)
        if self._version:
            log.info("scheduler: %s: kept, declared by a newer version of %s", newer, self._program)
        else:
            log.warning(
                "scheduler: %s: kept, declared by a version of %s, and this program has none; "
                "set Tenure(version=…)",
                newer,
                self._program,
            )

    def _next_delay(self) -> float:
        wait = super()._next_delay()
        if self._failures:
            return wait
        spread = random.uniform(0, _SPREAD)  # noqa: S311 - spreads load
        if self._passed_over:
            # More schedules may be due after this one, and they must not wait for a poll.
            longest = self.pause.total_seconds() / 10
            return min(longest, _AFTER_ANOTHER * 2.0 ** min(self._passed_over - 1, 10)) + spread
        if self._due_at is not None:
            wait = min(wait, max(self._due_at - boottime(), _SHORTEST_SLEEP) + spread)
        return wait

    async def close(self) -> None:
        await self._link.close()


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")
