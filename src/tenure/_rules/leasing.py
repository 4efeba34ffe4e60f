"""When a holder must renew its lease, and when it must stop. All times use the boot-time clock."""

from dataclasses import dataclass
from datetime import timedelta

from tenure.config import DEFAULTS, LONGEST_LEASE, Defaults, duration
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


def trusted_extension(times: LeaseTimes, ttl: timedelta, extend: timedelta) -> float:
    """Return how long to trust a lease of length `ttl` that a report extended to `extend`.

    The margin is a tenth of the extension, and no less than the lease's own margin.
    """
    own = ttl.total_seconds() - times.trusted_for - times.stop_within
    seconds = extend.total_seconds()
    return seconds - max(own, seconds / 10) - times.stop_within


def read_claim_lease(lease: float | timedelta | None, *, defaults: Defaults) -> timedelta | None:
    """Return the lease that a worker names for its claims, or None. Reject one out of range."""
    if lease is None:
        return None
    ttl = duration(lease, "lease")
    check_ttl(ttl, stop_within=defaults.stop_within, defaults=defaults)
    return ttl


def read_extension(extend: float | timedelta | None) -> timedelta | None:
    """Return the lease that a progress report names, or None. Reject one out of range."""
    if extend is None:
        return None
    ttl = duration(extend, "extend")
    if not timedelta(0) < ttl <= LONGEST_LEASE:
        raise InvalidValue(
            f"extend must be positive and at most {LONGEST_LEASE}, got {ttl}; name how long the "
            "lease must last from this report, and report again before it ends"
        )
    return ttl


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
