"""Django's connections around handlers: none is kept that Django would have closed."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection, connections, transaction
from django.test import override_settings

from tenure.contrib.django import app
from tenure.contrib.django.project import in_thread
from tests.contrib.django.acts import seen, work
from tests.contrib.django.sample import REQUESTS, aask, ask, cut, note

if TYPE_CHECKING:
    from collections.abc import Iterator

HANDLE: Any = None  # This middleware does not look at it.

pytestmark = pytest.mark.usefixtures("project")


@pytest.fixture(autouse=True)
def no_requests() -> Iterator[None]:
    """Begin with none, and close what threads kept that are gone by then."""
    yield
    for driver in REQUESTS:
        driver.close()
    REQUESTS.clear()


@pytest.fixture
def kept_for_ever(project: Any) -> Iterator[None]:
    """CONN_MAX_AGE = None."""
    answer = connections.settings["default"]
    before, answer["CONN_MAX_AGE"] = answer["CONN_MAX_AGE"], None
    yield
    answer["CONN_MAX_AGE"] = before


def still_open(url: str) -> set[int]:
    """Django's connections that are still there, but this thread's."""
    mine = connection.connection.info.backend_pid if connection.connection else 0
    alive = seen(
        url,
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database() "
        "AND application_name = ''",
    )
    return set(alive) - {mine}


def test_a_connection_is_closed_with_its_handler(url: str) -> None:
    app.enqueue_many(ask.bind() for _ in range(12))
    work(app, url, concurrency=3)
    assert len(set(REQUESTS)) == 12
    assert still_open(url) == set()


@pytest.mark.usefixtures("kept_for_ever")
def test_a_connection_that_is_kept_is_one_per_thread(url: str) -> None:
    app.enqueue_many(ask.bind() for _ in range(12))
    work(app, url, concurrency=3)
    assert len(REQUESTS) == 12
    assert len(set(REQUESTS)) <= 3


@pytest.mark.usefixtures("kept_for_ever")
def test_a_connection_that_broke_is_not_met_by_the_next_handler(url: str) -> None:
    app.enqueue_many([ask.bind(), cut.bind(), ask.bind()])
    work(app, url, concurrency=1)
    states = seen(url, "SELECT state FROM tenure.job_archive")
    assert states == ["completed", "completed"]
    assert len(set(REQUESTS)) == 2


def test_an_async_handlers_connection_is_closed_on_djangos_thread(url: str) -> None:
    app.enqueue_many(aask.bind() for _ in range(5))
    work(app, url)
    assert seen(url, "SELECT result FROM tenure.job_archive") == [0] * 5
    assert still_open(url) == set()


@pytest.mark.usefixtures("kept_for_ever")
def test_what_django_notes_of_queries_does_not_grow(url: str) -> None:
    with override_settings(DEBUG=True):
        app.enqueue_many(ask.bind() for _ in range(3))
        work(app, url, concurrency=1)
    assert seen(url, "SELECT result FROM tenure.job_archive") == [1, 1, 1]


def test_a_transaction_around_the_handler_is_left_alone(url: str) -> None:
    """Where a test runs handlers inside the transaction that it rolls back."""
    with transaction.atomic():
        job = note.enqueue()
        with contextmanager(in_thread)(HANDLE):
            assert note("Ada") == "Ada"
        assert connection.connection.closed is False
    assert seen(url) == [job.id]
