"""What is peculiar to Django's connections."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from asgiref.sync import sync_to_async
from django.db import connections, transaction
from django.db.transaction import TransactionManagementError

from support.drivers import django_database
from tenure.errors import InvalidValue
from tests.drivers.conftest import committed

if TYPE_CHECKING:
    from tenure.task import Task


@pytest.fixture
def alias(url: str) -> str:
    """The database as Django knows it."""
    return django_database(url)


def test_in_djangos_autocommit_an_enqueue_is_durable_at_once(
    hello: Task[[str], str, str], alias: str, url: str
) -> None:
    hello.using(connection=connections[alias]).enqueue("Ada")
    assert committed(url) == (0, 1)
    connections[alias].close()


def test_an_inner_block_takes_its_enqueue_back_alone(
    hello: Task[[str], str, str], alias: str, url: str
) -> None:
    connection = connections[alias]
    with transaction.atomic(using=alias):
        hello.using(connection=connection).enqueue("Ada")
        inner = transaction.savepoint(using=alias)
        hello.using(connection=connection).enqueue("Bob")
        transaction.savepoint_rollback(inner, using=alias)
    connection.close()
    assert committed(url) == (0, 1)


def test_a_transaction_that_django_gave_up_is_not_joined(
    hello: Task[[str], str, str], alias: str, url: str
) -> None:
    connection = connections[alias]
    with transaction.atomic(using=alias):
        transaction.set_rollback(True, using=alias)
        with pytest.raises(TransactionManagementError):
            hello.using(connection=connection).enqueue("Ada")
    connection.close()
    assert committed(url) == (0, 0)


async def test_async_code_joins_on_the_thread_where_django_keeps_its_connections(
    hello: Task[[str], str, str], alias: str, url: str
) -> None:
    connection = await sync_to_async(lambda: connections[alias])()
    await hello.using(connection=connection).aenqueue("Ada")
    await sync_to_async(connection.close)()
    assert committed(url) == (0, 1)


def test_a_django_database_of_another_kind_is_refused(
    hello: Task[[str], str, str], alias: str
) -> None:
    sqlite = {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}
    configured = connections.configure_settings({"default": {}, "lite": sqlite})
    connections.settings["lite"] = configured["lite"]
    with pytest.raises(InvalidValue, match=r"'lite' is sqlite, .* enqueue without connection="):
        hello.using(connection=connections["lite"]).enqueue("Ada")
