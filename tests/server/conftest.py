"""One server for the tests of a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.serving import Service, free_port, serving
from support.store import install

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.databases import Databases

__all__ = ["Service", "free_port", "serving"]


@pytest.fixture(scope="module")
def service(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One server for the tests of a file, which use queues of their own."""
    database = databases.create(databases.template("tenure", install))
    with serving(database, tmp_path_factory.mktemp("server")) as service:
        yield service
    databases.drop(database)
