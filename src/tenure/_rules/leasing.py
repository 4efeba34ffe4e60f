"""When a holder must renew its lease, and when it must stop. All times use the boot-time clock."""

from dataclasses import dataclass
from datetime import timedelta

from tenure.config import DEFAULTS, LONGEST_LEASE, Defaults
from tenure.errors import InvalidValue


def margin(ttl: timedelta, *, stop_within: timedelta, defaults: Defaults = DEFAULTS) -> timedelta:
    """Return how long before the end of a lease its holder must begin stopping."""
    return max(defaults.margin, ttl / 10) + stop_within


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    """A lease's times, in seconds after the request was *sent*, not after the response arrived."""

    renew_after: float
    trusted_for: float
    stop_within: float


def lease_times(
    ttl: timedelta, *, stop_within: timedelta, defaults: Defaults = DEFAULTS
) -> LeaseTimes:
    """Return when to renew a lease, and when its holder must begin stopping.

    Renewals start after a third of the lease. If the lease is shorter than the task expects, the
    handler gets less time to stop, which leaves time to retry a failed renewal once.
    """
    spare = (
        ttl / 3 * 2
        - margin(ttl, stop_within=timedelta(0), defaults=defaults)
        - defaults.renewal_window
    )
    stop_within = max(min(stop_within, spare), timedelta(0))
    trusted = ttl - margin(ttl, stop_within=stop_within, defaults=defaults)
    return LeaseTimes(ttl.total_seconds() / 3, trusted.total_seconds(), stop_within.total_seconds())


def check_ttl(
    ttl: timedelta, *, stop_within: timedelta = DEFAULTS.stop_within, defaults: Defaults = DEFAULTS
) -> None:
    """Reject a lease too short to retry a failed renewal in time."""
    if ttl > LONGEST_LEASE:
        raise InvalidValue(
            f"lease must be at most {LONGEST_LEASE}, got {ttl}; a long job keeps a short lease and "
            "renews it"
        )
    least = margin(ttl, stop_within=stop_within, defaults=defaults) + defaults.renewal_window
    if ttl / 3 * 2 <= least:
        raise InvalidValue(
            f"lease must be longer, got {ttl.total_seconds():g} s: two thirds of it must exceed "
            f"{least.total_seconds():g} s (its margin, stop_within and a second to spare); "
            "choose a longer lease or a shorter stop_within"
        )
