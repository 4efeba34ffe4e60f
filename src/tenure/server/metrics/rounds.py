"""Rounds of questions to the database: one for all scrapers, now and then, each with a deadline."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from time import monotonic
from typing import TYPE_CHECKING, Any

from tenure.admin import Admin, Depth, Lateness, QueueRow, Storage, WorkerRow
from tenure.errors import TenureError, Unreachable
from tenure.server.metrics.counters import Counters
from tenure.server.shared import Shared

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

EVERY = 5.0
_WITHIN = 2.0


@dataclass(frozen=True, slots=True)
class Round:
    """What one round came to; what was not answered is None."""

    began_at: float
    took: float
    answered: Mapping[str, bool] = field(default_factory=dict)
    depths: Sequence[Depth] | None = None
    queues: Sequence[QueueRow] | None = None
    workers: Sequence[WorkerRow] | None = None
    lateness: Lateness | None = None
    storage: Storage | None = None
    counts_age: timedelta | None = None

    @property
    def up(self) -> bool:
        """Whether the database answered at all."""
        return any(self.answered.values())


class Rounds:
    """The last round, and the next when it is time."""

    def __init__(self, admin: Admin, *, every: float = EVERY) -> None:
        self._admin = admin
        self._shared = Shared(self._round, fresh=every)
        self.counters: Counters = Counters()
        self.done: dict[bool, int] = {True: 0, False: 0}

    async def latest(self) -> Round:
        """A round that is fresh. Whoever comes while one is under way has its answer."""
        return await self._shared.latest()

    async def _round(self) -> Round:
        found = await self._ask()
        self.done[all(found.answered.values())] += 1
        return found

    async def _ask(self) -> Round:
        began_at = monotonic()
        questions: Mapping[str, Callable[[], Awaitable[Any]]] = {
            "depths": self._admin.adepths,
            "queues": self._admin.aqueues,
            "workers": self._admin.aworkers,
            "lateness": self._admin.alateness,
            "storage": self._admin.astorage,
            "totals": self._totals,
        }
        answers: dict[str, Any] = {}
        answered = dict.fromkeys(questions, False)
        for part, ask in questions.items():
            try:
                async with asyncio.timeout(_WITHIN):
                    answers[part] = await ask()
            except (TimeoutError, TenureError) as error:
                if not answers or isinstance(error, Unreachable):
                    # It is away: the others would wait as long, and the scraper does not.
                    break
            else:
                answered[part] = True
        counts_age = answers.pop("totals", None)
        took = monotonic() - began_at
        return Round(began_at, took, answered, counts_age=counts_age, **answers)

    async def _totals(self) -> timedelta | None:
        totals = await self._admin.atotals(self.counters.since)
        self.counters.add(totals)
        return totals.counts_age
