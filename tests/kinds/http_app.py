"""An app without tasks, for a worker that only sends requests."""

from tenure import Tenure

app = Tenure()
