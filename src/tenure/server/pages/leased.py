"""A lease as a page counts it down: its end by the clock that the page has."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from tenure.server.shapes.system import LeaseOut


@dataclass(frozen=True, slots=True)
class Held:
    """A lease, when it ends by this server's clock, which is the page's, and how much of it is left
    in percent."""

    lease: LeaseOut
    until: datetime
    share: float


def held(lease: LeaseOut) -> Held:
    """The lease, from what is left of it by the database's clock."""
    share = max(0.0, 100 * lease.remaining / lease.length) if lease.length else 0.0
    until = datetime.now(UTC) + timedelta(seconds=lease.remaining)
    return Held(lease, until, round(min(share, 100.0), 1))
