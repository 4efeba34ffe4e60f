"""Servers for sessions to be disappointed by."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.cluster import Cluster
from support.store import Database, install

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

# What does not wait for the standby that never comes.
LOCAL = "?options=-c%20synchronous_commit%3Dlocal"


@pytest.fixture(scope="session")
def waiting_server(pytestconfig: pytest.Config) -> Iterator[str]:
    """The URL of a database whose every commit waits for a standby that never comes."""
    settings = {"synchronous_standby_names": "ghost"}
    with Cluster(pytestconfig.getoption("--postgres"), settings) as cluster:
        url = cluster.url()
        install(url + LOCAL)
        yield url


@pytest.fixture
async def unheard(waiting_server: str) -> AsyncIterator[Database]:
    """A database whose commits are not confirmed."""
    database = Database(waiting_server)
    yield database
    await database.close()


@pytest.fixture
async def local(waiting_server: str) -> AsyncIterator[Database]:
    """The same database, seen without waiting for the standby."""
    database = Database(waiting_server + LOCAL)
    yield database
    await database.close()
