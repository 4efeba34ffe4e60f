"""A database with the printed roles, made once, and a connection as each of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.roles import database_with_roles

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.databases import Databases
    from support.roles import Parties


@pytest.fixture(scope="module")
def parties(databases: Databases) -> Iterator[Parties]:
    with database_with_roles(databases) as parties:
        yield parties
