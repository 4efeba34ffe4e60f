"""What the workers of these tests run."""

from __future__ import annotations

import asyncio
import time

from tenure import Tenure

app: Tenure = Tenure()


@app.task(name="hold_on", queue="slow", lease=30)
async def hold_on(seconds: float) -> None:
    """Run for this long."""
    await asyncio.sleep(seconds)


@app.task(name="block", queue="slow", lease=30)
async def block(seconds: float) -> None:
    """Keep the event loop from moving."""
    time.sleep(seconds)  # noqa: ASYNC251 - that is the point


@app.task(name="fall", queue="falling", max_attempts=1)
async def fall(what: str) -> None:
    """Fail, always."""
    raise RuntimeError(what)


@app.task(name="ok", queue="quick")
async def ok() -> None:
    """End well, at once."""
