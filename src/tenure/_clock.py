"""The clock of local deadlines."""

import time


def boottime() -> float:
    """The clock of local deadlines: it goes on while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
