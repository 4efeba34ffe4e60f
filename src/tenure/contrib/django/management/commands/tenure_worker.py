"""`manage.py tenure_worker`: run `tenure worker` with the project's tasks."""

import os
import sys
from typing import Any, NoReturn

from django.core.management.base import BaseCommand, CommandError, CommandParser

_TARGET = "tenure.contrib.django:app"


class Command(BaseCommand):
    """Check the settings, then replace this process with `tenure worker`.

    A worker's parent process must not load the project, because the project's code could block it.
    So this command executes `tenure worker` instead of calling its code.
    """

    help = "Run a worker for the project. Takes the options of `tenure worker`."

    def run_from_argv(self, argv: list[str]) -> NoReturn:
        """Execute `tenure worker` with these options. This does not return."""
        parser = CommandParser(add_help=False, allow_abbrev=False)
        parser.add_argument("--settings")
        parser.add_argument("--pythonpath")
        parser.add_argument("--skip-checks", action="store_true")
        # Django has already applied the first two.
        ours, options = parser.parse_known_args(argv[2:])
        if not ours.skip_checks and "--help" not in options:
            try:
                self.check()
            except CommandError as error:
                self.stderr.write(str(error), lambda text: text)
                sys.exit(error.returncode)
        # The manage.py directory, so the new process finds the project.
        project_path = sys.path[: 2 if ours.pythonpath else 1]
        path = [*project_path, *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(path)}
        command = [sys.executable, "-m", "tenure", "worker", _TARGET, *options]
        os.execve(sys.executable, command, environment)  # noqa: S606 - without a shell, on purpose

    def handle(self, *args: Any, **options: Any) -> NoReturn:  # noqa: ARG002 - Django's signature
        """Refuse `call_command`, because it would end the calling program."""
        raise CommandError(
            "tenure_worker replaces its process; run manage.py tenure_worker, or run a worker "
            "inside this program with async with app.run()"
        )
