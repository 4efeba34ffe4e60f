"""An enqueue joins Django's transaction by itself, on Django's own connection."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from asgiref.sync import async_to_sync
from django.db import connection, transaction

from tenure.contrib.django import app
from tests.contrib.django.acts import seen
from tests.contrib.django.sample import note

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.usefixtures("project")


def _one() -> list[int]:
    return [note.enqueue(text="Ada").id]


def _one_async() -> list[int]:
    return [async_to_sync(note.aenqueue)(text="Ada").id]


def _many() -> list[int]:
    return [handle.id for handle in app.enqueue_many(note.bind(text=t) for t in "ab")]


def _many_async() -> list[int]:
    calls = [note.bind(text=t) for t in "ab"]
    return [handle.id for handle in async_to_sync(app.aenqueue_many)(calls)]


WAYS = pytest.mark.parametrize("enqueue", [_one, _one_async, _many, _many_async])


@WAYS
def test_inside_a_transaction_the_job_exists_with_the_commit(
    enqueue: Callable[[], list[int]], url: str
) -> None:
    """Shows R20."""
    with transaction.atomic():
        ids = enqueue()
        assert seen(url) == []
    assert seen(url) == ids


@WAYS
def test_inside_a_transaction_the_job_goes_with_the_rollback(
    enqueue: Callable[[], list[int]], url: str
) -> None:
    """Shows R20."""
    with transaction.atomic():
        enqueue()
        transaction.set_rollback(True)
    assert seen(url) == []


@WAYS
def test_outside_a_transaction_the_job_is_durable_at_once(
    enqueue: Callable[[], list[int]], url: str
) -> None:
    ids = enqueue()
    assert seen(url) == ids


@WAYS
def test_apart_it_is_durable_although_the_transaction_is_rolled_back(
    enqueue: Callable[[], list[int]], url: str
) -> None:
    with transaction.atomic():
        with app.apart():
            ids = enqueue()
        enqueue()
        transaction.set_rollback(True)
    assert seen(url) == ids


def test_a_savepoint_that_is_rolled_back_takes_only_its_own_jobs(url: str) -> None:
    with transaction.atomic():
        [kept] = _one()
        with transaction.atomic():
            _one()
            transaction.set_rollback(True)
    assert seen(url) == [kept]


def test_a_key_is_seen_inside_the_transaction_that_enqueued_it(url: str) -> None:
    """Shows R17."""
    with transaction.atomic():
        first = note.using(key="once").enqueue()
        again = note.using(key="once").enqueue()
    assert (first.created, again.created, again.id) == (True, False, first.id)
    assert seen(url) == [first.id]


def test_an_enqueue_opens_no_connection_beside_djangos(url: str) -> None:
    _one()
    with transaction.atomic():
        _one()
    mine = connection.connection.info.backend_pid
    others = (
        f"SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> {mine}"
    )
    assert seen(url, f"{others} AND application_name <> 'outsider'") == []


def test_a_connection_that_is_named_counts(url: str) -> None:
    with transaction.atomic():
        job = note.using(connection=connection).enqueue()
        assert seen(url) == []
    assert seen(url) == [job.id]
