"""What a runtime needs of an app, so that it need not know `Tenure`."""

from collections.abc import Sequence
from typing import Protocol

from tenure._declarations import DeclaredSchedules
from tenure._hooks.middleware import Hooks
from tenure._registry import Registry
from tenure._store.engine import Engine
from tenure.config import Defaults


class WorkerHost(Protocol):
    """What a runtime needs of an app. `Tenure` has it; the runtime does not know `Tenure`."""

    hooks: Hooks
    tasks: Registry
    declared: DeclaredSchedules
    defaults: Defaults

    @property
    def engine(self) -> Engine:
        """The database."""

    @property
    def listen(self) -> bool | None:
        """Whether workers LISTEN; None: unless a pooler is in between."""

    @property
    def program(self) -> str:
        """The program whose code declares the app's schedules."""

    @property
    def version(self) -> Sequence[int]:
        """Which release of the program this is."""

    def load_tasks(self) -> None:
        """Load the modules with tasks."""


def finish_loading(app: WorkerHost) -> None:
    """Load the modules with the app's tasks; refuse middleware that cannot go around its tasks, and
    a program or a version that schedules cannot be declared by."""
    app.load_tasks()
    app.hooks.check(app.tasks.kinds)
    _ = app.program, app.version
