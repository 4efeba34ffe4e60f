"""The clock of local deadlines."""

import time
from collections.abc import Callable
from functools import partial

# It goes on while the machine sleeps. A partial, because each job reads it several times.
boottime: Callable[[], float] = partial(time.clock_gettime, time.CLOCK_BOOTTIME)
