"""An app whose module hangs while one file exists, and cannot be loaded while another does."""

import os
import time
from pathlib import Path

from tenure import Tenure
from tenure.config import DEFAULTS

app = Tenure(defaults=DEFAULTS.scaled(0.1))
TARGET = f"{__name__}:app"

while Path(os.environ.get("TENURE_TEST_HANG", "/nonexistent")).exists():
    time.sleep(0.05)

if Path(os.environ.get("TENURE_TEST_BREAK", "/nonexistent")).exists():
    raise RuntimeError("broken as planned")


@app.task
def brief() -> int:
    """Say which process ran it."""
    return os.getpid()
