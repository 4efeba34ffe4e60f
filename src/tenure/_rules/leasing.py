"""When a holder must stop, renew and be believed. All instants are the boot-time clock's."""

from datetime import timedelta

from tenure._model.lease import Lease
from tenure.config import DEFAULTS, LONGEST_LEASE, Defaults
from tenure.errors import InvalidValue


def margin(ttl: timedelta, *, stop_within: timedelta, defaults: Defaults = DEFAULTS) -> timedelta:
    """How long before its lease's end a holder must have begun to stop."""
    return max(defaults.margin, ttl / 10) + stop_within


def trusted_until(
    lease: Lease, *, asked_at: float, stop_within: timedelta, defaults: Defaults = DEFAULTS
) -> float:
    """The instant at which the holder must have stopped by itself.

    Anchored to when the claim or renewal was *sent*, so a slow round trip shortens the
    trust instead of stretching it past the store's expiry.
    """
    kept = lease.ttl - margin(lease.ttl, stop_within=stop_within, defaults=defaults)
    return asked_at + kept.total_seconds()


def renew_at(lease: Lease, *, asked_at: float) -> float:
    """The instant at which the lease is to be renewed: a third of it after it was asked for."""
    return asked_at + lease.ttl.total_seconds() / 3


def check_ttl(
    ttl: timedelta, *, stop_within: timedelta = DEFAULTS.stop_within, defaults: Defaults = DEFAULTS
) -> None:
    """Refuse a lease in which a renewal that failed once could not be made good in time."""
    if ttl > LONGEST_LEASE:
        raise InvalidValue(
            f"a lease of {ttl} is too long: {LONGEST_LEASE} is the most; "
            "a long job keeps a short lease and renews it"
        )
    least = margin(ttl, stop_within=stop_within, defaults=defaults) + defaults.slack
    if ttl / 3 * 2 <= least:
        raise InvalidValue(
            f"a lease of {ttl.total_seconds():g} s is too short: two thirds of it must exceed "
            f"{least.total_seconds():g} s (its margin, stop_within and a second to spare); "
            "choose a longer lease or a shorter stop_within"
        )
