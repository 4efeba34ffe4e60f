"""Apps on a fresh database, in whose `run()` handlers do what a handler can do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import pytest

from tenure import Tenure
from tenure.config import DEFAULTS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from support.store import Database
    from tenure.config import Defaults

# A lease of three seconds; polls, beats and sweeps to match.
FAST = DEFAULTS.scaled(0.1)


class Apps(Protocol):
    """Makes one more app on the test's database."""

    def __call__(self, defaults: Defaults = FAST) -> Tenure: ...


@pytest.fixture
async def apps(db: Database) -> AsyncIterator[Apps]:
    """Apps that are closed at the end, in sync code and in this test's event loop."""
    made: list[Tenure] = []

    def make(defaults: Defaults = FAST) -> Tenure:
        made.append(Tenure(db.url, defaults=defaults))
        return made[-1]

    yield make
    for app in made:
        app.close()
        await app.aclose()


@pytest.fixture
def app(apps: Apps) -> Tenure:
    """An app with short leases."""
    return apps()
