"""How long a failed attempt waits before the next one."""

from datetime import timedelta

from tenure.config import Backoff


def delay(policy: Backoff, *, attempt: int, chance: float) -> timedelta:
    """The wait after the `attempt`th failure; `chance` in [0, 1) draws the jitter.

    Doubling stops where it passes the cap, so that a high attempt overflows nothing.
    """
    doublings = min(max(attempt - 1, 0), 62)
    seconds = min(policy.cap.total_seconds(), policy.base.total_seconds() * 2**doublings)
    return timedelta(seconds=seconds * (1 + policy.jitter * chance))
