"""The operator's verbs over a database of the test's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tenure import _wiring
from tenure.admin import Admin

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from support.store import Database


@pytest.fixture
async def admin(db: Database) -> AsyncIterator[Admin]:
    """Both faces of the verbs; what they opened is closed."""
    engine = _wiring.engine(db.url)
    yield Admin(engine)
    engine.close()
    await engine.aclose()
