"""Durations counted in buckets: where the buckets end, and what can be told from them."""

from collections.abc import Sequence

# Seconds. A bucket holds what is below its bound and not below the one before; the last one holds
# the rest. Counts are stored by their place here: never change a bound.
BOUNDS = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0),
)
BUCKETS = len(BOUNDS) + 1


def quantile(buckets: Sequence[int], share: float) -> float | None:
    """The seconds that this share of what was counted stayed below, as if each bucket were filled
    evenly; None if nothing was counted. Beyond the last bound it is that bound."""
    rank = share * sum(buckets)
    below = 0
    lower = 0.0
    for bound, count in zip(BOUNDS, buckets, strict=False):
        if count and below + count >= rank:
            return lower + (bound - lower) * (rank - below) / count
        below += count
        lower = bound
    return lower if below < sum(buckets) else None


def added(one: Sequence[int], other: Sequence[int]) -> tuple[int, ...]:
    """Two counts as one."""
    return tuple(a + b for a, b in zip(one, other, strict=True))
