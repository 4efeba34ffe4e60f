"""The app of the workers that the battery starts: no tasks, only shell work."""

import os

from tenure import Tenure
from tenure.config import DEFAULTS

# The share of the usual lease of 30 s; a busy machine loses shorter ones.
SCALE = float(os.environ.get("LEASE_SCALE", "0.1"))
app = Tenure(os.environ.get("TENURE_DATABASE_URL"), defaults=DEFAULTS.scaled(SCALE))
