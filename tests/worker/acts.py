"""What the tests of this suite do again and again: wait for ends, with a deadline, and look."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

from tenure.admin import By

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from support.store import Database
    from tenure import Handle, Tenure
    from tenure._model.attempt import AttemptRow
    from tenure._model.job import JobRow

T = TypeVar("T")
BY = By("ada", source="suite", reason="because")
DEADLINE = 10.0


async def end(handle: Handle[Any], within: float = DEADLINE) -> JobRow:
    """The job once it has ended."""
    await handle.wait_async(within)
    return await row(handle)


async def row(handle: Handle[Any]) -> JobRow:
    """The job as it is now; it must be somewhere."""
    found = await handle.aget()
    assert found is not None
    return found


async def attempts(app: Tenure, handle: Handle[Any]) -> Sequence[AttemptRow]:
    """The job's ended running periods, oldest first."""
    return await app.admin.jobs.aattempts(handle.id)


async def until(ask: Callable[[], Awaitable[T]], within: float = DEADLINE) -> T:
    """What is asked for, once it is there."""
    async with asyncio.timeout(within):
        while True:
            if answer := await ask():
                return answer
            await asyncio.sleep(0.01)


async def periods(
    app: Tenure, handle: Handle[Any], count: int, within: float = DEADLINE
) -> Sequence[AttemptRow]:
    """The job's running periods, once this many have ended."""

    async def ask() -> Sequence[AttemptRow]:
        ended = await attempts(app, handle)
        return ended if len(ended) >= count else []

    return await until(ask, within)


async def set_off(event: asyncio.Event, within: float = DEADLINE) -> None:
    """Return once the event has come."""
    async with asyncio.timeout(within):
        await event.wait()


async def ledger(db: Database) -> None:
    """A table of the user's own."""
    await db.fetch("CREATE TABLE ledger (entry text)")


async def entries(db: Database) -> list[str]:
    """What was written into it, and committed."""
    return [found["entry"] for found in await db.fetch("SELECT entry FROM ledger ORDER BY entry")]
