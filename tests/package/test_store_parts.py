"""The store is made of parts: no long line of ancestors, one file and one protocol for each."""

from dataclasses import fields
from inspect import getmodule

import pytest

from tenure._store import port
from tenure._store.port import Store
from tenure._store.postgres.store import PostgresStore

PARTS = [part.name for part in fields(Store)]


def test_the_store_has_at_most_four_ancestors() -> None:
    assert len(PostgresStore.__mro__) <= 4


@pytest.mark.parametrize("name", PARTS)
def test_a_part_has_one_base_at_most_and_the_file_of_its_name(name: str) -> None:
    kind = type(getattr(PostgresStore(), name))
    module = getmodule(kind)
    assert len(kind.__mro__) <= 3
    assert module is not None
    assert module.__name__ == f"tenure._store.postgres.{name}"


@pytest.mark.parametrize("name", PARTS)
def test_a_part_has_what_its_protocol_asks_for(name: str) -> None:
    protocol = next(part.type for part in fields(Store) if part.name == name)
    request = {verb for verb in vars(getattr(port, str(protocol))) if not verb.startswith("_")}
    assert request
    assert request <= set(dir(getattr(PostgresStore(), name)))
