"""`tenure init`: the first two files of a project. It changes none that is there."""

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
    for n in range(to):
        job.progress(done=n, total=to)
        time.sleep(1)
    return f"Counted to {to}"
"""

SETTINGS = """\
# What the programs in this directory are told. An argument is stronger, and so is a variable
# named TENURE_ and the setting: TENURE_CONCURRENCY=4.

app = "jobs:app"  # what `tenure worker` and `tenure dev` run

# The database. Without one, `tenure dev` starts a private PostgreSQL, kept in .tenure.
# database_url = "postgresql://user@localhost/mydatabase"

# concurrency = 10  # jobs at once in each process of a worker
# processes = 1  # processes of a worker that run jobs
# queues = ["mail", "default"]  # the queues that a worker serves; else those of the tasks
# grace = 25  # seconds that running jobs have to end when a worker is told to stop
# log_level = "info"
"""


def init(
    directory: Annotated[
        Path, typer.Argument(metavar="DIRECTORY", help="Where to; else here.")
    ] = Path(),
) -> int:
    """Write jobs.py and tenure.toml, to begin with. What is there is left as it is."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, text in (("jobs.py", JOBS), ("tenure.toml", SETTINGS)):
            _write(directory / name, text)
    except OSError as error:
        raise CommandError(
            "the files cannot be written",
            str(error),
            "name a directory that you can write to, as in: tenure init myproject",
        ) from error
    print_note(f"next: {_go_to(directory)}tenure dev")
    return Exit.DONE


def _write(file: Path, text: str) -> None:
    try:
        with file.open("x") as new:
            new.write(text)
    except FileExistsError:
        print_note(f"{file} is there already; it is left as it is")
    else:
        print_note(f"wrote {file}")


def _go_to(directory: Path) -> str:
    return "" if directory.resolve() == Path.cwd() else f"cd {directory} && "
