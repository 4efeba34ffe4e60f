"""The example's project: on a fresh database, in this process or in its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.core.management import call_command

from support.django_project import Shop, configure, default_database

# Before the tests beside this are loaded: models can be imported only then.
configure()

from tenure.contrib.django import app  # noqa: E402 - made from settings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.databases import Databases


def _migrate(url: str) -> None:
    with default_database(url):
        call_command("migrate", verbosity=0)


@pytest.fixture
def url(databases: Databases) -> Iterator[str]:
    """A fresh database on which `manage.py migrate` was run."""
    made = databases.create(databases.template("django_shop", _migrate))
    yield made
    databases.drop(made)


@pytest.fixture
def project(url: str) -> Iterator[Any]:
    """The project's app, with this database as `default`, in this process."""
    with default_database(url):
        yield app
        app.close()


@pytest.fixture
def shop(url: str, tmp_path: Path) -> Shop:
    """The example, run by its own commands."""
    return Shop(url, tmp_path)
