"""An app with short leases on a fresh database that also has a table of the user's own."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from sqlalchemy import NullPool, create_engine

from support.drivers import DRIVERS
from support.store import install
from tenure import Tenure
from tenure.config import DEFAULTS
from tests.drivers import matrix

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from sqlalchemy import Engine

    from support.databases import Databases
    from tenure.task import Task


@pytest.fixture
def url(databases: Databases) -> Iterator[str]:
    """The URL of a fresh database with Tenure's schema and a ledger."""
    made = databases.create(databases.template("tenure", install))
    with psycopg.connect(made) as connection:
        connection.execute("CREATE TABLE ledger (entry text)")
    yield made
    databases.drop(made)


@pytest.fixture
async def app(url: str) -> AsyncIterator[Tenure]:
    """An app with short leases."""
    app = Tenure(url, defaults=DEFAULTS.scaled(0.1))
    yield app
    app.close()
    await app.aclose()


@pytest.fixture
def hello(app: Tenure) -> Task[[str], str, str]:
    """A task to enqueue."""

    @app.task
    def hello(name: str) -> str:
        return f"Hello {name}"

    return hello


@pytest.fixture
def engine(url: str) -> Engine:
    """SQLAlchemy over psycopg."""
    return create_engine(url.replace("postgresql://", "postgresql+psycopg://"), poolclass=NullPool)


def committed(url: str) -> tuple[int, int]:
    """How many lines of the user's and how many jobs others can see."""
    with psycopg.connect(url) as connection:
        counts = connection.execute(
            "SELECT (SELECT count(*) FROM ledger), (SELECT count(*) FROM tenure.job)"
        ).fetchone()
    assert counts is not None
    return counts[0], counts[1]


def one(url: str, query: str) -> Any:
    """The one value that a plain query answers with."""
    with psycopg.connect(url) as connection:
        found = connection.execute(query.encode()).fetchone()
    assert found is not None
    return found[0]


_passed: dict[str, set[str]] = {}
_failed: set[tuple[str, str]] = set()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note which tests passed, for which driver."""
    name, _, rest = report.location[2].partition("[")
    driver = next((d.name for d in DRIVERS if d.name in rest.removesuffix("]").split("-", 1)), "")
    if report.failed:
        _failed.add((name, driver))
    elif report.when == "call" and report.passed:
        _passed.setdefault(name, set()).add(driver)


def pytest_sessionfinish() -> None:
    """Write the table, if asked to."""
    if os.environ.get("TENURE_MATRIX"):
        for name, driver in _failed:
            _passed.get(name, set()).discard(driver)
        matrix.write(_passed)
