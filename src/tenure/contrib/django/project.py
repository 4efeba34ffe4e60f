"""Provide the project's `Tenure` instance, and manage Django's connections around handlers.

Before and after each handler, its thread closes connections that are broken or older than
CONN_MAX_AGE. A thread therefore keeps at most one connection per database, or none if CONN_MAX_AGE
is 0.
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
    """Manage database connections in a `def` handler's thread."""
    _begin()
    try:
        yield
    finally:
        _close_old()


async def on_loop(_job: AsyncJob) -> AsyncIterator[None]:
    """Manage database connections in the one thread that async code uses for Django's database."""
    await sync_to_async(_begin)()
    try:
        yield
    finally:
        await sync_to_async(_close_old)()


def _begin() -> None:
    # If DEBUG is on, Django records every query. In a worker, that list would grow forever.
    reset_queries()
    _close_old()


def _close_old() -> None:
    """Close old connections as Django does after a request, except inside a test's transaction."""
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            connection.close_if_unusable_or_obsolete()


_TASKS = "tasks"
_OWN_TRANSACTION: ContextVar[bool] = ContextVar("tenure_django_apart", default=False)


class DjangoTenure(Tenure):
    """A `Tenure` that reads Django's settings and enqueues over Django's connections."""

    def __init__(self) -> None:
        options = conf.read()
        super().__init__(
            schema=options.schema,
            imports=options.imports,
            pool_size=options.pool_size,
            listen=options.listen,
            program=options.program,
            version=options.version,
            codec=options.codec,
        )
        # Any module may be the first to use the app, so a module name doesn't identify the project.
        self._module = (settings.SETTINGS_MODULE or "django").partition(".")[0]
        self.database: str = options.database
        self._own_engine: Any = None
        self.middleware("run", only="def")(in_thread)
        self.middleware("run", only="async")(on_loop)

    @property
    def engine(self) -> Any:
        """The database engine for Django's alias. It follows a test runner to its test database."""
        url = conf.address(connections[self.database])
        with self._finding:
            # Keep an engine that `with_engine` swapped in.
            if self._engine is self._own_engine and url != self._url:
                self.close()
                self._url, self._engine = url, None
                self._own_engine = super().engine
            return super().engine

    def callers_connection(self) -> Any:
        """Return Django's connection for the current thread, or None inside `apart`."""
        return None if _OWN_TRANSACTION.get() else ConnectionProxy(connections, self.database)

    @contextmanager
    def apart(self) -> Iterator[None]:
        """Enqueue outside Django's transaction. A rollback doesn't affect these jobs."""
        before = _OWN_TRANSACTION.set(True)
        try:
            yield
        finally:
            _OWN_TRANSACTION.reset(before)

    def load_tasks(self) -> None:
        """Import every installed app's `tasks.py`, and the modules in IMPORTS."""
        super().load_tasks()
        for config in apps.get_app_configs():
            # Our own `tasks` needs django-tasks, which may not be installed.
            if config.label != "tenure" and module_has_submodule(config.module, _TASKS):
                import_module(f"{config.name}.{_TASKS}")
        if getattr(settings, "TASKS", None):
            self._serve_queues_of_backends()

    def _serve_queues_of_backends(self) -> None:
        """Serve every Tenure backend's QUEUES, even those that only an enqueue names."""
        from tenure.contrib.django.task_framework import (  # noqa: PLC0415 - an extra
            WorkerBackend,
            task_backends,
        )

        for backend in task_backends.all():
            if isinstance(backend, WorkerBackend):
                self.tasks.serve(backend.queues)


_making = threading.Lock()


def get_app() -> DjangoTenure:
    """Return the project's app. The first call creates it from the settings."""
    with _making:
        return _make_app()


@cache
def _make_app() -> DjangoTenure:
    return DjangoTenure()
