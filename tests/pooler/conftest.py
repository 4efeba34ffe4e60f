"""A PgBouncer before the run's server, in transaction mode, as Debian has it."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from support.daemons import PgBouncer
from tenure import Tenure
from tenure.config import DEFAULTS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from support.cluster import Cluster
    from support.store import Database

FAST = DEFAULTS.scaled(0.1)


@pytest.fixture(scope="session", params=[{}, {"ignore_startup_parameters": "options"}])
def pgbouncer(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[PgBouncer]:
    """One that refuses options, as it is installed, and one that is told to drop them."""
    # Few sessions for many clients, so that a client seldom gets the same one twice.
    with PgBouncer(port=cluster.port, default_pool_size=3, **request.param) as server:
        yield server


@pytest.fixture
def pooled(db: Database, pgbouncer: PgBouncer) -> str:
    """The URL of the test's database, by way of the pooler."""
    return pgbouncer.url(urlsplit(db.url).path.removeprefix("/"))


@pytest.fixture
async def app(pooled: str) -> AsyncIterator[Tenure]:
    """An app that knows the pooler's address alone."""
    app = Tenure(pooled, defaults=FAST)
    yield app
    app.close()
    await app.aclose()
