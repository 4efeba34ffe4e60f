"""Looks at the leases from outside, all the time: none is taken from a holder who lives. Whether
one that was over is valid again is for `grants` to say, which miss nothing between two looks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from proof.checker.events import Violation
from proof.faults import grants
from proof.faults.history import now
from proof.poller import Looking

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import psycopg

    from proof.checker.events import Event

Period = tuple[int, int]
_EVERY = 0.02
# A handler may say something just before its process is ended.
_LAST_WORDS = 0.3
_LEASES = """
SELECT extract(epoch FROM clock_timestamp())::float8, j.id, j.token,
    extract(epoch FROM j.lease_expires_at)::float8
FROM tenure.job AS j WHERE j.state = 'running'
"""
_STARTED = "SELECT extract(epoch FROM pg_postmaster_start_time())::float8"
TAKEN = """
SELECT a.job_id, a.token, extract(epoch FROM a.ended_at)::float8
FROM tenure.attempt AS a
WHERE a.outcome = 'lost' OR starts_with(a.error_message, 'the database was restarted')
"""


class Witness(Looking):
    """Only for servers whose clock goes right. Made before the first worker is."""

    def __init__(self, url: str) -> None:
        super().__init__(url, self._see, every=_EVERY)
        # When the server started, each time that it did.
        self.starts: set[float] = set()
        self._ends: dict[Period, float] = {}
        # What the database's clock is ahead of this machine's monotonic one.
        self._ahead = 0.0
        grants.note(url)

    def _see(self, connection: psycopg.Connection[Any]) -> None:
        self.starts.update(at for (at,) in connection.execute(_STARTED))
        for at, job_id, token, end in connection.execute(_LEASES).fetchall():
            self._ahead = at - now()
            self._ends[job_id, token] = end

    def violations(
        self, taken: Sequence[tuple[int, int, float]], seen: Mapping[int, list[Event]]
    ) -> Iterator[Violation]:
        """I3: `taken` are the periods that were rescued, and when; `seen` is what handlers said."""
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
