"""The app of the workers that the battery starts: no tasks, only shell work."""

import os

from tenure import Tenure
from tenure.config import DEFAULTS

# A lease of three seconds.
app = Tenure(os.environ.get("TENURE_DATABASE_URL"), defaults=DEFAULTS.scaled(0.1))
