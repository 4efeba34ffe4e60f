"""The app of the worker processes that make gRPC calls in this suite."""

from tenure import Tenure
from tenure.config import DEFAULTS

app = Tenure(defaults=DEFAULTS.scaled(0.1))
