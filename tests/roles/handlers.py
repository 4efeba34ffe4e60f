"""What the worker of these tests runs."""

from __future__ import annotations

from tenure import Tenure

app: Tenure = Tenure()


@app.task(name="good", queue="poisoned")
async def good(n: int = 0) -> int:
    """Answer."""
    return n
