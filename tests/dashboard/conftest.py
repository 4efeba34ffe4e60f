"""One server and one browser for the tests of a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.browsing import chromium, seated
from support.serving import serving
from support.store import install

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser

    from support.browsing import Seat
    from support.databases import Databases
    from support.serving import Service


@pytest.fixture(scope="module")
def service(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One server for the tests of a file, which use queues of their own."""
    database = databases.create(databases.template("tenure", install))
    with serving(database, tmp_path_factory.mktemp("server")) as service:
        yield service
    databases.drop(database)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for the tests of a file."""
    with chromium() as browser:
        yield browser


@pytest.fixture
def seat(browser: Browser, service: Service) -> Iterator[Seat]:
    """A user who may do everything, at a desktop screen."""
    with seated(browser, service) as seat:
        yield seat
