"""What tests in this process do: look past Django's connections, and work."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import psycopg

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenure import Tenure


def seen(url: str, query: str = "SELECT id FROM tenure.job ORDER BY id") -> list[Any]:
    """What others see."""
    with psycopg.connect(url, application_name="outsider") as connection:
        return [row[0] for row in connection.execute(query.encode()).fetchall()]


def work(app: Tenure, url: str, *, concurrency: int = 2, queues: Sequence[str] = ("*",)) -> None:
    """Run jobs on this thread's loop until none is live."""

    async def main() -> None:
        until = time.monotonic() + 90
        async with app.run(concurrency=concurrency, queues=queues):
            while seen(url):
                assert time.monotonic() < until, "jobs are still live"
                await asyncio.sleep(0.02)
        await app.aclose()

    asyncio.run(main())
