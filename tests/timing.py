"""Measure how long something takes, for tests that carry the mark `timing`.

One measurement can be late at random, so a test judges the median of three. These tests run
alone and one after the other (`just test-timing`). A bound that only ends a test which hangs is
not a measurement and needs no mark.
"""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

MEASUREMENTS = 3


def seconds(work: Callable[[], object], clock: Callable[[], float] = time.monotonic) -> float:
    """Return how long one call takes on this clock."""
    began = clock()
    work()
    return clock() - began


def median(measure: Callable[[], float]) -> float:
    """Return the median of three measurements."""
    return statistics.median(measure() for _ in range(MEASUREMENTS))


async def amedian(measure: Callable[[], Awaitable[float]]) -> float:
    """Return the median of three measurements, taken one after the other."""
    return statistics.median([await measure() for _ in range(MEASUREMENTS)])
