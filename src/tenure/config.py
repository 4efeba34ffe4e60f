"""The built-in values of everything that can be set, and the factor that scales time. No I/O."""

from dataclasses import dataclass, replace
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class Backoff:
    """A failed attempt waits `min(cap, base * 2^(attempt-1))`, and up to `jitter` of it more."""

    base: timedelta = timedelta(seconds=30)
    cap: timedelta = timedelta(hours=1)
    jitter: float = 0.2


@dataclass(frozen=True, slots=True)
class Defaults:
    """The built-in values. A setting row, a queue row, a task and a call override them in turn."""

    lease: timedelta = timedelta(seconds=30)
    stop_within: timedelta = timedelta(seconds=2)
    margin: timedelta = timedelta(seconds=1)
    slack: timedelta = timedelta(seconds=1)
    floor_lag: timedelta = timedelta(seconds=2)
    max_attempts: int = 3
    max_losses: int = 3
    backoff: Backoff = Backoff()
    keep_archive: timedelta = timedelta(days=7)
    keep_attempts: timedelta = timedelta(days=7)
    keep_failed: timedelta = timedelta(days=90)
    keep_workers: timedelta = timedelta(days=7)

    def scaled(self, factor: float) -> "Defaults":
        """The same with the lease protocol's constants scaled, for suites with short leases."""
        return replace(
            self,
            lease=self.lease * factor,
            stop_within=self.stop_within * factor,
            margin=self.margin * factor,
            slack=self.slack * factor,
            floor_lag=self.floor_lag * factor,
        )


DEFAULTS = Defaults()
LONGEST_LEASE = timedelta(days=1)
# Durations are added to instants; within this, no sum leaves the calendar.
LONGEST_WAIT = timedelta(days=36_500)
