"""The pytest plugin: a database for each test, and the app pointed at it.

pytest loads this file in every run; what it needs beyond pytest it imports when a fixture is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tenure import Tenure


def pytest_addoption(parser: pytest.Parser) -> None:
    """One line of configuration: which app the tests are about."""
    parser.addini("tenure_app", "the app under test, as module:attribute", default="")


@pytest.fixture(scope="session")
def tenure_prepare() -> Callable[[str], None] | None:
    """Override this to make tables of your own in the tests' database, whose URL it is called
    with, once for each process."""
    return None


@pytest.fixture(scope="session")
def _tenure_database(
    request: pytest.FixtureRequest, tenure_prepare: Callable[[str], None] | None
) -> Iterator[str]:
    """One database for this process; with pytest-xdist, on a server that all of them share."""
    from tenure.testing.databases import database, install, server  # noqa: PLC0415 - only if it is used

    xdist = getattr(request.config, "workerinput", {})
    run, me = xdist.get("testrunuid", uuid4().hex)[:12], xdist.get("workerid", "main")
    with server(run) as url, database(url, f"{run}_{me}") as database_url:
        install(database_url)
        if tenure_prepare is not None:
            tenure_prepare(database_url)
        yield database_url


@pytest.fixture
def tenure_database(_tenure_database: str) -> str:
    """The URL of a database with Tenure's schema and nothing in it. Tables of your own are yours
    to empty."""
    from tenure.testing.databases import clear  # noqa: PLC0415 - only if it is used

    clear(_tenure_database)
    return _tenure_database


@pytest.fixture
def tenure_app(request: pytest.FixtureRequest, tenure_database: str) -> Iterator[Tenure]:
    """The app that `tenure_app` names in pytest's configuration, on the test's database."""
    from tenure.testing.databases import clear, install, use_database  # noqa: PLC0415 - only if it is used
    from tenure.worker.loader import load  # noqa: PLC0415 - only if it is used

    target = request.config.getini("tenure_app")
    if not target:
        pytest.fail(
            "no app is named: write tenure_app = module:attribute into pytest's configuration, "
            "or a fixture tenure_app of your own with tenure.testing.use_database",
            pytrace=False,
        )
    app = load(target)
    if app.schema != "tenure":
        install(tenure_database, app.schema)
        clear(tenure_database, app.schema)
    with use_database(app, tenure_database):
        yield app
