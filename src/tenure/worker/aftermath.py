"""What becomes of the leases of a dead child: settled by the parent, at once."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from itertools import compress
from typing import TYPE_CHECKING

from tenure import _wiring
from tenure._executors import endings
from tenure._model.ids import WorkerId
from tenure._model.lease import Settled, Settling
from tenure._model.outcome import Ended, Released
from tenure._model.worker import Presence
from tenure._rules import lifecycle
from tenure._services.base import log
from tenure._services.board import UNBEGUN, Entry, Phase
from tenure._services.holdings import Why
from tenure.config import DEFAULTS
from tenure.errors import StoreError
from tenure.job import boottime
from tenure.worker.news import End, News

if TYPE_CHECKING:
    from tenure._model.lease import Rescued
    from tenure._model.outcome import Outcome
    from tenure._store.engine import Engine, Link

_AGAIN = 0.2


class Aftermath:
    """Settles what dead children left. The parent's only business with the database."""

    def __init__(self, *, name: str) -> None:
        self._name = name
        self._engine: Engine | None = None
        self._link: Link | None = None

    def know(self, url: str, schema: str) -> None:
        """Learn the database from a child: the parent loads no user code."""
        if self._engine is None:
            self._engine = _wiring.engine(url, schema=schema)
            self._link = self._engine.link(f"tenure {self._name} parent")

    async def expect(self, url: str, schema: str) -> None:
        """A child is about to end: be connected by then, for the grace is short."""
        self.know(url, schema)
        if self._link is not None:
            # If it fails now, `settle` tries again and says why.
            with suppress(StoreError):
                await self._link.open()

    async def settle(self, worker: WorkerId, entries: Sequence[Entry], *, on_purpose: bool) -> News:
        """End these leases of a worker that is gone, trying for as long as they can matter;
        answers with what listeners are to hear of it.

        What had not started is released with its attempt. What was running is lost together,
        unless the child was ended on purpose: then it is released, now that it has ended, and
        what was out of time is told so.
        """
        engine, link = self._engine, self._link
        if engine is None or link is None:
            return News([], [])
        guilty = [] if on_purpose else suspects(entries)
        lost = [entry.lease for entry in guilty]
        taken = set(lost)
        rest = [entry for entry in entries if entry.lease not in taken]
        ended = [_ended(entry) for entry in rest]
        told: list[End] = []
        rescued: Sequence[Rescued] = []
        longest = max((e.lease.ttl for e in entries), default=DEFAULTS.lease)
        until = boottime() + 2 * longest.total_seconds()
        while boottime() < until:
            try:
                gone = engine.store.beat(worker, state=Presence.OFFLINE, running=0)
                await link.run(gone)
                if ended:
                    answers = await link.run(engine.store.settle(ended))
                    told += _told(rest, ended, answers)
                    busy = [answer.answer is Settling.BUSY for answer in answers]
                    rest, ended = [*compress(rest, busy)], [*compress(ended, busy)]
                if lost:
                    rescued = await link.run(engine.store.forfeit(lost))
                    lost = []
            except StoreError as error:
                log.warning("parent: what a dead child held is not settled yet: %s", error)
            else:
                # What somebody has locked is asked again.
                if not ended:
                    if entries:
                        counts = len(entries) - len(guilty), len(guilty)
                        log.info("parent: of a dead child %d released, %d lost", *counts)
                    return News(told, [*rescued])
            await asyncio.sleep(_AGAIN)
        return News(told, [*rescued])

    async def close(self) -> None:
        """Close the connection."""
        if self._link is not None:
            await self._link.close()


def suspects(entries: Sequence[Entry]) -> list[Entry]:
    """Who may have killed the child: what ran in it. What ran in a process of its own only if
    nothing else did; what had ended, or waited for such a process, cannot have."""
    inside = [entry for entry in entries if entry.phase in (Phase.STARTED, Phase.TIMED_OUT)]
    return inside or [entry for entry in entries if entry.phase is Phase.APART]


def _told(
    entries: Sequence[Entry], ended: Sequence[Ended], answers: Sequence[Settled]
) -> list[End]:
    """What was settled just now, of what had begun; what was settled before is told already."""
    return [
        End(entry.lease.job_id, entry.attempt, answer.state, end.settlement)
        for entry, end, answer in zip(entries, ended, answers, strict=True)
        if answer.state is not None and entry.phase not in UNBEGUN
    ]


def _ended(entry: Entry) -> Ended:
    outcome: Outcome = Released()
    if entry.phase is Phase.TIMED_OUT:
        outcome = endings.stopped(Why.TIMEOUT, None)
    settlement = lifecycle.settle(
        outcome,
        attempt=entry.attempt,
        limit=entry.limit,
        backoff=entry.retry_after,
    )
    return Ended(entry.lease, settlement)
