"""The made-up migrations of the fixture directories, and what is seen of them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from tenure._store import migrations

if TYPE_CHECKING:
    from collections.abc import Sequence

    from support.store import Database
    from tenure._store.migrations import Migration

FIXTURES = Path(__file__).parent / "fixtures"
STEPS: Sequence[Migration] = migrations.load(FIXTURES / "steps")


async def recorded(db: Database) -> list[tuple[int, str, bool]]:
    """What schema_version says, in order."""
    rows = await db.fetch("SELECT version, name, breaking FROM tenure.schema_version ORDER BY 1")
    return [(row["version"], row["name"], row["breaking"]) for row in rows]


async def until_waited(db: Database, name: str, task: asyncio.Task[Sequence[str]]) -> None:
    """Return once the server says that this connection has waited for half a second, or when
    what it was to do has ended."""
    async with asyncio.timeout(10):
        while not task.done():
            rows = await db.fetch(
                "SELECT pid FROM pg_stat_activity WHERE application_name = $1 "
                "AND wait_event_type = 'Lock' "
                "AND clock_timestamp() - query_start > interval '500 milliseconds'",
                name,
            )
            if rows:
                return
            await asyncio.sleep(0.02)


async def until_patient(db: Database, name: str) -> None:
    """Return once the server says that this connection waits, for a lock or for its next try.

    A migrator that waits for another one's index may not hold a snapshot meanwhile: the
    index waits for that.
    """
    async with asyncio.timeout(10):
        while True:
            rows = await db.fetch(
                "SELECT pid FROM pg_stat_activity WHERE application_name = $1 "
                "AND wait_event_type IN ('Lock', 'Timeout')",
                name,
            )
            if rows:
                return
            await asyncio.sleep(0.005)
