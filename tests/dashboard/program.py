"""What the worker of these tests runs: a mailer whose host does not answer."""

from __future__ import annotations

import time

from tenure import Tenure

app: Tenure = Tenure()


@app.task(queue="mail", max_attempts=1)
def send(to: str) -> None:
    """Fails until it is fixed."""
    raise TimeoutError(f"no answer from smtp-{len(to)}.example.org")


@app.task(queue="mail", max_attempts=1)
def render(page: int) -> None:
    """Fails for another reason."""
    raise ValueError(f"page {page} has no template")


@app.task(queue="mail")
def import_list(seconds: float) -> None:
    """Takes its time, and the only slot."""
    time.sleep(seconds)
