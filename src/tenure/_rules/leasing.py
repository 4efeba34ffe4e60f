"""When a holder must stop, renew and be believed. All instants are the boot-time clock's."""

from dataclasses import dataclass
from datetime import timedelta

from tenure.config import DEFAULTS, LONGEST_LEASE, Defaults
from tenure.errors import InvalidValue


def margin(ttl: timedelta, *, stop_within: timedelta, defaults: Defaults = DEFAULTS) -> timedelta:
    """How long before its lease's end a holder must have begun to stop."""
    return max(defaults.margin, ttl / 10) + stop_within


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    """What a lease of one length means to its holder, in seconds after it was asked for.

    Anchored to when the claim or renewal was *sent*, so a slow round trip shortens the trust
    instead of stretching it past the store's expiry.
    """

    renew_after: float
    trusted_for: float
    stop_within: float


def lease_times(
    ttl: timedelta, *, stop_within: timedelta, defaults: Defaults = DEFAULTS
) -> LeaseTimes:
    """It is renewed after a third of it; when the trust is over, the holder begins to stop.

    A lease may be shorter than its task thought, where a call or a queue says so: then the time
    to stop gives way, so that a renewal that failed once can still be made good.
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
    """Refuse a lease in which a renewal that failed once could not be made good in time."""
    if ttl > LONGEST_LEASE:
        raise InvalidValue(
            f"a lease of {ttl} is too long: {LONGEST_LEASE} is the most; "
            "a long job keeps a short lease and renews it"
        )
    least = margin(ttl, stop_within=stop_within, defaults=defaults) + defaults.renewal_window
    if ttl / 3 * 2 <= least:
        raise InvalidValue(
            f"a lease of {ttl.total_seconds():g} s is too short: two thirds of it must exceed "
            f"{least.total_seconds():g} s (its margin, stop_within and a second to spare); "
            "choose a longer lease or a shorter stop_within"
        )
