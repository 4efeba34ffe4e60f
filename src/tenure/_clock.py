"""The clock for local deadlines."""

import time
from collections.abc import Callable
from functools import partial

# This clock keeps counting while the machine sleeps. A partial is fast: each job calls it often.
boottime: Callable[[], float] = partial(time.clock_gettime, time.CLOCK_BOOTTIME)
