"""Declares the program's schedules, then fires what is due. Anyone may; none is the leader."""

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
# The first of many to look fires it all; the others come when that is done.
_SPREAD = 0.005
_SHORTEST_SLEEP = 0.001
_AFTER_ANOTHER = 0.01
_DECLARE_AGAIN = 5.0
_NAMED = 10


class Scheduler(Service):
    """Accounts for ticks as they fall due, and sleeps until the next one is."""

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
        self._told_unread: dict[str, str] = {}
        self.ticks: int = 0
        self.jobs: int = 0

    def wake(self, word: str = "") -> None:
        """A wakeup was heard: look at once, if it is about schedules or may have been."""
        if word in ("", SCHEDULES_CHANGED):
            self._from_zero_at = 0.0
            self.run_soon()

    async def tick(self) -> int:
        """Declare, until that is done; then fire a batch of what is due."""
        if not self._declared and boottime() >= self._declare_at:
            await self._declare()
        # Read before the question is sent: a slow answer makes us come too early, never too late.
        asked_at = boottime()
        if asked_at >= self._from_zero_at:
            self._floor, self._from_zero_at = None, asked_at + self._sweep
            self._unread.clear()
        op = self._store.ticks.fire(count=_BATCH, floor=self._floor, unread=self._unread)
        firing = await self._link.run(op)
        self._learn(firing, asked_at)
        self.ticks += firing.ticks
        self.jobs += firing.jobs
        if firing.ticks:
            log.debug("scheduler: %d ticks made %d jobs", firing.ticks, firing.jobs)
        self._leave_unread(firing.skipped_queues)
        return firing.ticks or len(firing.skipped_queues)

    def _leave_unread(self, unread: "Mapping[str, str]") -> None:
        """Leave to others what cannot be read here, until the next look at all; say so once."""
        self._unread.update(unread)
        for name, why in unread.items():
            if self._told_unread.get(name) != why:
                self._told_unread[name] = why
                log.error(
                    "scheduler: %s cannot be read here, and is left to others: %s; if others know "
                    "the zone, install or update tzdata here",
                    name,
                    why,
                )

    def _learn(self, firing: "FireResult", asked_at: float) -> None:
        """When to look next, and from where on: below what was due first there was nothing, but
        for what was not committed yet."""
        due = firing.now if firing.next_at is None else min(firing.next_at, firing.now)
        self._floor = due - self._lag
        self._due_at = None
        if firing.next_at is not None:
            self._due_at = asked_at + (firing.next_at - firing.now).total_seconds()
        # What is due and was not ours to fire is being fired by another.
        is_due = firing.next_at is not None and firing.next_at <= firing.now
        self._passed_over = self._passed_over + 1 if is_due and not firing.ticks else 0

    async def _declare(self) -> None:
        """Bring the schedules in the database to what this code says. What the database refuses
        keeps nobody's schedules from being fired."""
        op = self._store.schedules.declare(self._program, self._version, self._schedules)
        try:
            declaring = await self._link.run(op)
        except (InvalidValue, PayloadError, QueryFailed) as error:
            self._refused += 1
            self._declare_at = boottime() + _DECLARE_AGAIN
            level = logging.ERROR if self._refused == 1 else logging.DEBUG
            log.log(level, "scheduler: %s cannot declare: %s", self._program, error)
        else:
            self._declared = True
            self._tell(declaring)

    def _tell(self, declaring: "DeclareResult") -> None:
        for what in ("made", "changed", "retired"):
            if names := getattr(declaring, what):
                log.info("scheduler: %s: %s by %s", _listed(names), what, self._program)
        if not declaring.newer:
            return
        names = _listed(declaring.newer)
        if self._version:
            log.info("scheduler: %s: left as a newer version of %s has it", names, self._program)
        else:
            log.warning(
                "scheduler: %s: left as a version of %s has it, and this one says no version; "
                "write Tenure(version=…)",
                names,
                self._program,
            )

    def _next_delay(self) -> float:
        """Until the next tick, and at most for the usual pause."""
        wait = super()._next_delay()
        if self._failures:
            return wait
        spread = random.uniform(0, _SPREAD)  # noqa: S311 - spreads load
        if self._passed_over:
            # Behind it may be others, whose time is not known: they must not wait for a poll.
            longest = self.pause.total_seconds() / 10
            return min(longest, _AFTER_ANOTHER * 2.0 ** min(self._passed_over - 1, 10)) + spread
        if self._due_at is not None:
            wait = min(wait, max(self._due_at - boottime(), _SHORTEST_SLEEP) + spread)
        return wait

    async def close(self) -> None:
        await self._link.close()


def _listed(names: Sequence[str]) -> str:
    """The names for a line of the log; of many, the first ones."""
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")
