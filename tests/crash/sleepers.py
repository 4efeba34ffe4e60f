"""A task for workers that look for themselves so rarely that it shows whether they were woken.

Loaded by real workers, in their own processes.
"""

import time
from dataclasses import replace
from datetime import timedelta

from tenure import Tenure
from tenure._rules import claiming
from tenure.config import DEFAULTS
from tests.crash.handlers import effect

POLL = 6.0
TARGET = f"{__name__}:app"
# A scan finds what a poll would.
claiming.SCAN_AT_LEAST = timedelta(seconds=POLL)

app = Tenure(defaults=replace(DEFAULTS.scaled(0.1), poll=timedelta(seconds=POLL)))


@app.task
async def mark(path: str, number: int, enqueued_at: float) -> None:
    """Leave how long the job has waited."""
    effect(path, f"{number} {time.time() - enqueued_at:.3f}")
