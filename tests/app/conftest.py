"""A database for this suite, and apps on it that are closed in both worlds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.store import install
from tenure import Tenure

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from support.databases import Databases
    from tests.app.acts import Apps


@pytest.fixture
def url(databases: Databases) -> Iterator[str]:
    """The URL of a fresh database with the schema of this release."""
    made = databases.create(databases.template("tenure", install))
    yield made
    databases.drop(made)


@pytest.fixture(scope="session")
def untouched(databases: Databases) -> str:
    """The URL of one database for all tests that enqueue nothing."""
    return databases.create(databases.template("tenure", install))


@pytest.fixture
async def apps() -> AsyncIterator[Apps]:
    """Apps that are closed at the end, in sync code and in this test's event loop."""
    made: list[Tenure] = []

    def make(url: str, *, pool_size: int = 10) -> Tenure:
        made.append(Tenure(url, pool_size=pool_size))
        return made[-1]

    yield make
    for app in made:
        app.close()
        await app.aclose()


@pytest.fixture
async def app(apps: Apps, url: str) -> Tenure:
    return apps(url)
