"""The interface through which the runtime uses an app."""

from collections.abc import Sequence
from typing import Protocol

from tenure._declarations import DeclaredNotices, DeclaredSchedules
from tenure._hooks.middleware import Hooks
from tenure._registry import Registry
from tenure._store.engine import Engine
from tenure.config import Defaults


class WorkerHost(Protocol):
    """The part of `Tenure` that the runtime uses, so that it doesn't have to import the class."""

    hooks: Hooks
    tasks: Registry
    declared: DeclaredSchedules
    notices: DeclaredNotices
    defaults: Defaults

    @property
    def engine(self) -> Engine:
        """The database."""

    @property
    def listen(self) -> bool | None:
        """Whether workers use LISTEN. None means yes, unless there's a pooler in between."""

    @property
    def program(self) -> str:
        """The program whose code declares the app's schedules."""

    @property
    def version(self) -> Sequence[int]:
        """The program's release."""

    def load_tasks(self) -> None:
        """Load the modules that define tasks."""


def finish_loading(app: WorkerHost) -> None:
    """Load the app's tasks; reject an invalid middleware, program or version."""
    app.load_tasks()
    app.hooks.check(app.tasks.kinds)
    _ = app.program, app.version
