"""Commands as jobs: `app.shell(["pg_dump", "-Fc", "shop"])`.

A worker runs only the executables that its configuration allows, and without a shell. A guard
process kills the command, its children and its daemons before the job's lease ends.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from tenure._model.ids import Json
from tenure.config import TaskOptions
from tenure.kinds.shell import configuration
from tenure.kinds.shell.arguments import check as check
from tenure.kinds.shell.handler import handler as handler

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenure.kinds.call import WorkCall

OPTIONS: TaskOptions = {"queue": "shell", "stop_within": 5}


def prepare() -> None:
    """Check the worker's configuration and machine, once when a worker starts.

    Raises:
        ConfigError: The configuration is invalid, or this machine can't run commands with it.
    """
    configuration.check_machine(configuration.load())


class ShellCall:
    """Run a command as a job. You get one as `app.shell`.

    Example::

        from tenure import Tenure

        app = Tenure()
        app.shell(["pg_dump", "-Fc", "shop"], timeout=3600).enqueue()
    """

    def __init__(self, make: "Callable[[dict[str, Json]], WorkCall]") -> None:
        self._make = make

    def __call__(
        self,
        argv: Sequence[str],
        *,
        cwd: str | None = None,
        stdin: str | None = None,
        env: Mapping[str, str | Mapping[str, str]] | None = None,
        timeout: float | timedelta | None = None,
    ) -> "WorkCall":
        """Return a command that you can enqueue, bind or schedule.

        Exit code 0 completes the job. 75 and codes outside 64 to 78 retry it. The others from 64 to
        78 fail it permanently.

        Args:
            argv: The executable and its arguments, each as its own string. No shell expands them.
                The executable is an absolute path or a name, and the worker must allow it.
            cwd: The directory to start in (default: the worker's first allowed one, or `/`).
            stdin: The command's input (default: none).
            env: Environment variables that the worker allows. A value is text, or the name of a
                secret: `{"PGPASSWORD": {"secret": "shop_db"}}`.
            timeout: How long an attempt may run (default: the queue's or the installation's
                setting).

        Returns:
            The command, with `enqueue`, `using` and `bind`.

        Raises:
            InvalidValue: An argument is invalid.
        """
        arguments: dict[str, Json] = {
            "argv": list(argv) if not isinstance(argv, str) else argv,
            "cwd": cwd,
            "stdin": stdin,
            "env": None if env is None else {name: _value(value) for name, value in env.items()},
        }
        arguments = {name: value for name, value in arguments.items() if value is not None}
        check(arguments)
        call = self._make(arguments)
        return call if timeout is None else call.using(timeout=timeout)


def _value(value: str | Mapping[str, str]) -> Json:
    return dict(value) if isinstance(value, Mapping) else value
