"""`tenure init`: create a project's first two files."""

import os
from pathlib import Path
from typing import Annotated

import typer

from tenure.cli.errors import CommandError, Exit
from tenure.cli.output import print_note

JOBS = """\
import time

from tenure import Job, Tenure

app = Tenure()


@app.task(queue="mail", max_attempts=5, timeout=60)
def hello(name: str) -> str:
    return f"Hello {name}"


@app.task(lease=7)  # how soon a dead worker's job is picked up again (default: 30 s)
def count(job: Job, to: int) -> str:
    start = job.cursor or 0  # where the last run stopped
    for n in range(start, to):
        time.sleep(1)
        job.progress(cursor=n + 1, done=n + 1, total=to)
    return f"Counted to {to}, {'resumed' if start else 'in one run'}"
"""

SETTINGS = """\
# Tenure settings for this project. Command-line options and TENURE_* variables override them,
# as in TENURE_CONCURRENCY=4.

app = "jobs:app"  # the app that `tenure dev` and `tenure worker` run

# The database. Without one, `tenure dev` starts a private PostgreSQL in .tenure.
# database_url = "postgresql://user@localhost/mydatabase"

# concurrency = 10  # jobs at a time in each worker process
# processes = 1  # worker processes that run jobs
# queues = ["mail", "default"]  # queues to serve (default: those of the tasks, and default)
# grace = 25  # seconds that running jobs have to finish when a worker stops
# log_level = "info"
"""


def init(
    directory: Annotated[
        Path, typer.Argument(metavar="DIRECTORY", help="Directory to write to.")
    ] = Path(),
) -> int:
    """Create jobs.py and tenure.toml, to start a project.

    `jobs.py` has two tasks. `tenure.toml` has the most common settings. Existing files are left
    unchanged.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, text in (("jobs.py", JOBS), ("tenure.toml", SETTINGS)):
            _write(directory / name, text)
    except OSError as error:
        raise CommandError(
            "the files cannot be written",
            str(error),
            "choose a directory that you can write to, as in: tenure init myproject",
        ) from error
    print_note(f"next: {_go_to(directory)}tenure dev")
    return Exit.DONE


def _write(file: Path, text: str) -> None:
    try:
        # Tenure refuses a tenure.toml that others may write, whatever the umask.
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        with os.fdopen(descriptor, "w") as new:
            new.write(text)
    except FileExistsError:
        print_note(f"{file} exists and stays unchanged")
    else:
        print_note(f"wrote {file}")


def _go_to(directory: Path) -> str:
    return "" if directory.resolve() == Path.cwd() else f"cd {directory} && "
