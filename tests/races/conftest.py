"""The database of a race: its hand-set clock begins after the server's start."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.store import SECOND

if TYPE_CHECKING:
    from support.store import Database


@pytest.fixture
async def db(db: Database) -> Database:
    """The same, a second on: a rescue counts no loss of a lease from before the server's start."""
    db.clock.advance(SECOND)
    return db
