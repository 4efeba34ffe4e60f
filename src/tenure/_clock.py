"""The clock for local deadlines."""

import time
from collections.abc import Callable
from functools import partial

# This clock keeps running while the machine is suspended. It's a partial because each job calls it
# often, and a partial is fast.
boottime: Callable[[], float] = partial(time.clock_gettime, time.CLOCK_BOOTTIME)
