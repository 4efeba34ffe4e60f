"""The kit's own fixtures, for the kit's own tests: an app on a database for tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tenure.testing import use_database
from tests.testing import shop

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tenure import Tenure


@pytest.fixture
def app(tenure_database: str) -> Iterator[Tenure]:
    with use_database(shop.app, tenure_database):
        yield shop.app
    shop.done.clear()
