"""The worker protocol on a fresh database, with its services running."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tenure import Tenure
from tenure.config import DEFAULTS
from tenure.gateway import Remote

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from support.store import Database

# A lease of three seconds; polls and beats to match.
FAST = DEFAULTS.scaled(0.1)


@pytest.fixture
async def app(db: Database) -> AsyncIterator[Tenure]:
    app = Tenure(db.url, defaults=FAST)
    yield app
    app.close()
    await app.aclose()


@pytest.fixture
async def remote(app: Tenure) -> AsyncIterator[Remote]:
    remote = Remote(app, name="server")
    async with remote.running():
        yield remote
