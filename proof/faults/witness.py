"""Looks at the leases from outside, all the time: one that was over is never valid again, and none
is taken from a holder who lives."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any, Self

import psycopg

from proof.checker.events import Violation
from proof.faults.history import now

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from proof.checker.events import Event

Period = tuple[int, int]
_EVERY = 0.02
# A renewal that was in time may be seen later, when its commit is.
_SURELY = 1.0
# A handler may say something just before its process is ended.
_LAST_WORDS = 0.3
_LEASES = """
SELECT extract(epoch FROM clock_timestamp())::float8, j.id, j.token,
    extract(epoch FROM j.lease_expires_at)::float8
FROM tenure.job AS j WHERE j.state = 'running'
"""
TAKEN = """
SELECT a.job_id, a.token, extract(epoch FROM a.ended_at)::float8
FROM tenure.attempt AS a WHERE a.outcome = 'lost'
"""


class Witness:
    """A thread with a connection of its own; only for servers whose clock goes right."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._ends: dict[Period, float] = {}
        self._over: dict[Period, float] = {}
        self._revived: dict[Period, float] = {}
        # What the database's clock is ahead of this machine's monotonic one.
        self._ahead = 0.0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(30)

    def _watch(self) -> None:
        while not self._stop.wait(_EVERY):
            with (
                contextlib.suppress(psycopg.OperationalError),
                psycopg.connect(self._url, autocommit=True, connect_timeout=5) as connection,
            ):
                while not self._stop.wait(_EVERY):
                    self._look(connection)

    def _look(self, connection: psycopg.Connection[Any]) -> None:
        for at, job_id, token, end in connection.execute(_LEASES).fetchall():
            self._ahead = at - now()
            period = job_id, token
            if period in self._over and end > at:
                self._revived[period] = at - self._over[period]
            elif end < at - _SURELY:
                self._over.setdefault(period, end)
            self._ends[period] = end

    def violations(
        self, taken: Sequence[tuple[int, int, float]], seen: Mapping[int, list[Event]]
    ) -> Iterator[Violation]:
        """I3. `taken` are the periods that were rescued, and when; `seen` is what handlers said."""
        for (job_id, token), after in self._revived.items():
            what = f"the lease of {token} was valid again, {after:.1f} s after its end"
            yield Violation("I3", job_id, what)
        for job_id, token, at in taken:
            early = self._ends.get((job_id, token), at) - at
            signs = (event.since for event in seen.get(job_id, ()) if event.token == token)
            alive = max(signs, default=0.0) + self._ahead - at
            if early > 0 and alive > _LAST_WORDS:
                what = (
                    f"{token} was taken {early:.1f} s before its lease's end, "
                    f"and its handler was at work {alive:.1f} s later"
                )
                yield Violation("I3", job_id, what)
