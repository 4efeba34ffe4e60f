"""The pytest plugin: an empty database for each test, and an app that uses it.

pytest loads this file in every run, so everything else is imported inside the fixtures.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tenure import Tenure


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the configuration option `tenure_app`."""
    parser.addini("tenure_app", "the app under test, as module:attribute", default="")


@pytest.fixture(scope="session")
def tenure_prepare() -> Callable[[str], None] | None:
    """Override this fixture to create your own tables in the test database.

    Returns:
        A function that takes the database URL and is called once in each process, or None.
    """
    return None


@pytest.fixture(scope="session")
def _tenure_database(
    request: pytest.FixtureRequest, tenure_prepare: Callable[[str], None] | None
) -> Iterator[str]:
    """Create one database for this process. With pytest-xdist, processes share one server."""
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
    """Provide the URL of a database in which Tenure's tables are empty.

    Your own tables are not emptied.
    """
    from tenure.testing.databases import clear  # noqa: PLC0415 - only if it is used

    clear(_tenure_database)
    return _tenure_database


@pytest.fixture
def tenure_app(request: pytest.FixtureRequest, tenure_database: str) -> Iterator[Tenure]:
    """Provide the app that `tenure_app` names in pytest's configuration, on the test database."""
    from tenure.testing.databases import clear, install, use_database  # noqa: PLC0415 - only if it is used
    from tenure.worker.loader import load  # noqa: PLC0415 - only if it is used

    target = request.config.getini("tenure_app")
    if not target:
        pytest.fail(
            "tenure_app is not set; write tenure_app = module:attribute into pytest's "
            "configuration, or override the fixture tenure_app with tenure.testing.use_database",
            pytrace=False,
        )
    app = load(target)
    if app.schema != "tenure":
        install(tenure_database, app.schema)
        clear(tenure_database, app.schema)
    with use_database(app, tenure_database):
        yield app
