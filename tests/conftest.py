"""The servers and databases that tests ask for. Suites add their own templates."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from proof import mutations
from support.cluster import Cluster
from support.databases import Databases
from support.store import Database, install

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

# For the suites that run other suites.
pytest_plugins = ["pytester"]

# A busy machine makes wall time a poor judge of one example. `just test` is quick, CI is thorough.
settings.register_profile("quick", deadline=None, max_examples=20)
settings.register_profile("full", deadline=None, max_examples=100)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--postgres",
        type=int,
        choices=(15, 18),
        default=15,
        help="the PostgreSQL major version to test on",
    )
    parser.addoption("--bug", default=None, help="apply this bug of proof/mutations")


def pytest_configure(config: pytest.Config) -> None:
    if bug := config.getoption("--bug"):
        mutations.apply(bug)


@pytest.fixture(scope="session")
def cluster(pytestconfig: pytest.Config) -> Iterator[Cluster]:
    """One private server for the whole run."""
    with Cluster(pytestconfig.getoption("--postgres"), in_memory=True) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def databases(cluster: Cluster) -> Databases:
    return Databases(cluster)


@pytest.fixture
def empty_database(databases: Databases) -> Iterator[str]:
    """The URL of a fresh database with nothing in it."""
    url = databases.create()
    yield url
    databases.drop(url)


@pytest.fixture
async def db(databases: Databases) -> AsyncIterator[Database]:
    """A fresh database with the schema of this release, and a clock that is set by hand."""
    database = Database(databases.create(databases.template("tenure", install)))
    yield database
    await database.close()
    databases.drop(database.url)
