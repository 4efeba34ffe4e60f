"""How fast this machine is now. A shared one can run at half its speed for minutes."""

from __future__ import annotations

import statistics
import time

# Processor time of the plain loop below, on the machine that the bars of time are for.
_PLAIN_LOOP = 0.08


def slowdown() -> float:
    """Return how many times slower than that machine this one is now, at least 1."""
    return max(1.0, statistics.median(_plain_loop() for _ in range(5)) / _PLAIN_LOOP)


def _plain_loop() -> float:
    began = time.process_time()
    sum(number * number for number in range(1_000_000))
    return time.process_time() - began
