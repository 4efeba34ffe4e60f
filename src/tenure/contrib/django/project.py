"""The project's `Tenure`, and Django's connections around handlers.

A connection that is broken or older than CONN_MAX_AGE is closed before the handler and after it, in
its own thread. So a thread keeps at most one per database, and none with CONN_MAX_AGE = 0.
"""

import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib import import_module
from typing import Any

from asgiref.sync import sync_to_async
from django.apps import apps
from django.conf import settings
from django.db import connections, reset_queries
from django.utils.connection import ConnectionProxy
from django.utils.module_loading import module_has_submodule

from tenure import AsyncJob, Job
from tenure.app import Tenure
from tenure.contrib.django import conf


def in_thread(_job: Job) -> Iterator[None]:
    """Middleware for a `def`: the connections of its thread."""
    _begin()
    try:
        yield
    finally:
        _close_old()


async def on_loop(_job: AsyncJob) -> AsyncIterator[None]:
    """Middleware for an `async def`: the connections of the one thread on which async code
    reaches Django's database."""
    await sync_to_async(_begin)()
    try:
        yield
    finally:
        await sync_to_async(_close_old)()


def _begin() -> None:
    # With DEBUG, Django notes every query; a worker never ends, and neither would the notes.
    reset_queries()
    _close_old()


def _close_old() -> None:
    """As Django does after a request; but not where a test runs the handler inside a transaction
    of its own."""
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            connection.close_if_unusable_or_obsolete()


_TASKS = "tasks"
_APART: ContextVar[bool] = ContextVar("tenure_django_apart", default=False)


class DjangoTenure(Tenure):
    """A `Tenure` that is made from the settings, and enqueues over Django's connections."""

    def __init__(self) -> None:
        options = conf.read()
        super().__init__(
            schema=options.schema,
            imports=options.imports,
            pool_size=options.pool_size,
            listen=options.listen,
            program=options.program,
            version=options.version,
        )
        # Whoever is first to ask for the app makes it: that module says nothing of the project.
        self._module = (settings.SETTINGS_MODULE or "django").partition(".")[0]
        self.database: str = options.database
        self._own_engine: Any = None
        self.middleware("run", only="def")(in_thread)
        self.middleware("run", only="async")(on_loop)

    @property
    def engine(self) -> Any:
        """The database that Django knows by the alias now: a test runner puts another one there."""
        url = conf.address(connections[self.database])
        with self._finding:
            # One that somebody else has put in its place stays.
            if self._engine is self._own_engine and url != self._url:
                self.close()
                self._url, self._engine = url, None
                self._own_engine = super().engine
            return super().engine

    def callers_connection(self) -> Any:
        """Django's connection of whatever thread it is used in; None inside `apart`."""
        return None if _APART.get() else ConnectionProxy(connections, self.database)

    @contextmanager
    def apart(self) -> Iterator[None]:
        """What is enqueued inside is durable at once, whatever becomes of Django's transaction."""
        before = _APART.set(True)
        try:
            yield
        finally:
            _APART.reset(before)

    def load_tasks(self) -> None:
        """Load `tasks.py` of every installed app, and the modules of IMPORTS."""
        super().load_tasks()
        for config in apps.get_app_configs():
            # Its own `tasks` is the backend for django-tasks, which need not be installed.
            if config.label != "tenure" and module_has_submodule(config.module, _TASKS):
                import_module(f"{config.name}.{_TASKS}")
        if getattr(settings, "TASKS", None):
            self._serve_queues_of_backends()

    def _serve_queues_of_backends(self) -> None:
        """Have a worker serve the QUEUES of every backend of Tenure's, also those that only an
        enqueue names."""
        from tenure.contrib.django.task_framework import (  # noqa: PLC0415 - an extra
            WorkerBackend,
            task_backends,
        )

        for backend in task_backends.all():
            if isinstance(backend, WorkerBackend):
                self.tasks.serve(backend.queues)


_making = threading.Lock()


def get_app() -> DjangoTenure:
    """Return the project's app. The first call makes it from the settings."""
    with _making:
        return _make_app()


@cache
def _make_app() -> DjangoTenure:
    return DjangoTenure()
