"""`manage.py tenure_worker`: `tenure worker` with the project's tasks, and its options."""

import os
import sys
from typing import Any, NoReturn

from django.core.management.base import BaseCommand, CommandError, CommandParser

_TARGET = "tenure.contrib.django:app"


class Command(BaseCommand):
    """Checks the settings, and becomes `tenure worker`.

    It becomes it, and does not call it: this process has loaded the project, and a worker's
    parent must be without code that could keep it from its watch.
    """

    help = (
        "Run the project's jobs until told to stop. Takes the options of `tenure worker`; "
        "see `manage.py tenure_worker --help`."
    )

    def run_from_argv(self, argv: list[str]) -> NoReturn:
        """Do what the command line says; does not return."""
        parser = CommandParser(add_help=False, allow_abbrev=False)
        parser.add_argument("--settings")
        parser.add_argument("--pythonpath")
        parser.add_argument("--skip-checks", action="store_true")
        # Django has heeded the first two already.
        ours, options = parser.parse_known_args(argv[2:])
        if not ours.skip_checks and "--help" not in options:
            try:
                self.check()
            except CommandError as error:
                self.stderr.write(str(error), lambda text: text)
                sys.exit(error.returncode)
        # Where manage.py is, as its own process finds the project.
        project_path = sys.path[: 2 if ours.pythonpath else 1]
        path = [*project_path, *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(path)}
        command = [sys.executable, "-m", "tenure", "worker", _TARGET, *options]
        os.execve(sys.executable, command, environment)  # noqa: S606 - without a shell, on purpose

    def handle(self, *args: Any, **options: Any) -> NoReturn:  # noqa: ARG002 - Django's signature
        """Refuse to be called from within a program: it would end there."""
        raise CommandError(
            "tenure_worker takes the place of the process that starts it; run it by "
            "manage.py tenure_worker, or work inside this program: async with app.run()"
        )
