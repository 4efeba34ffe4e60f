"""A database for this suite, whose clock is past the server's start."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.store import SECOND

if TYPE_CHECKING:
    from support.store import Database


@pytest.fixture
async def db(db: Database) -> Database:
    """The clock begins at a whole second, which may lie before the start of a server that is
    that young; and what was claimed before the server's start is not counted as lost."""
    db.clock.advance(SECOND)
    return db
