"""Databases that nothing was migrated in yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.store import Database

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@pytest.fixture
async def bare(empty_database: str) -> AsyncIterator[Database]:
    """A database with nothing in it, not even the schema."""
    database = Database(empty_database)
    yield database
    await database.close()
