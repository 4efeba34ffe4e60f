"""Apps with short leases on fresh databases, for programs of frameworks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.store import install
from tenure import Tenure
from tenure.config import DEFAULTS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from support.databases import Databases


@pytest.fixture
def url(databases: Databases) -> Iterator[str]:
    """The URL of a fresh database with the schema of this release."""
    made = databases.create(databases.template("tenure", install))
    yield made
    databases.drop(made)


@pytest.fixture
async def app(url: str) -> AsyncIterator[Tenure]:
    """An app with short leases."""
    app = Tenure(url, defaults=DEFAULTS.scaled(0.1))
    yield app
    app.close()
    await app.aclose()
