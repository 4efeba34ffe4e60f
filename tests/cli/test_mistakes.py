"""The five likeliest mistakes of a first day, each answered with what, why and what to do; on the
command line without a traceback, in Python as the last line of one."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tenure._store.postgres.schema import migrations
from tenure.cli.errors import Exit
from tests.cli.conftest import Command

if TYPE_CHECKING:
    from pathlib import Path

JOBS = """
from tenure import Tenure

app = Tenure()

@app.task
def hello(name: str) -> str:
    return f"Hello {name}"
"""
NOWHERE = "postgresql://ana:geheim@127.0.0.1:1/shop"
NO_DATABASE = "no database is configured, and no `tenure dev` runs in {directory}"
NAME_ONE = (
    "start `tenure dev`, or set TENURE_DATABASE_URL=postgresql://user@host/database, or write "
    'database_url = "postgresql://user@host/database" in tenure.toml'
)
CHECK = "check that the server runs, that the address is right and that it is not a standby"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "jobs.py").write_text(JOBS)
    return tmp_path


@pytest.fixture
def command(directory: Path) -> Command:
    """The command where no database is configured."""
    return Command(directory)


@pytest.fixture
def bare(directory: Path, empty_database: str) -> Command:
    """The command over a database without a schema."""
    return Command(directory, url=empty_database)


def python(command: Command, code: str, **environment: str) -> str:
    """Return the last lines of a program that ends with an error."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=command.directory,
        env=command.environment(**environment),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert "geheim" not in done.stderr
    words = " ".join(done.stderr[done.stderr.rindex("\ntenure.errors.") :].split())
    # The driver's pool gives up in the same moment, and may say so last.
    return words.partition(" reconnection attempt in pool ")[0]


ENQUEUE = "import jobs; jobs.hello.enqueue(name='Ada')"


def test_no_database_on_the_command_line(command: Command) -> None:
    ended = command("db", "migrate")
    assert ended.code == Exit.USAGE
    assert ended.error == (
        "a setting is missing or wrong",
        NO_DATABASE.format(directory=command.directory),
        NAME_ONE,
    )


def test_no_database_for_a_worker(command: Command) -> None:
    ended = command("worker", "jobs:app")
    assert ended.code == Exit.FAILED
    assert ended.error == (
        "the worker cannot start",
        NO_DATABASE.format(directory=command.directory),
        NAME_ONE,
    )


def test_no_database_in_python(command: Command) -> None:
    why = NO_DATABASE.format(directory=command.directory)
    assert python(command, ENQUEUE) == f"tenure.errors.ConfigError: {why}; {NAME_ONE}"


@pytest.mark.parametrize("verb", [("db", "migrate"), ("job", "list"), ("dev", "jobs:app")])
def test_a_url_where_nothing_answers_on_the_command_line(
    command: Command, verb: tuple[str, ...]
) -> None:
    ended = command(*verb, TENURE_DATABASE_URL=NOWHERE)
    what, why, todo = ended.error
    assert ended.code == Exit.UNREACHABLE
    assert what == "the database did not answer"
    assert why.startswith("cannot connect to a writable PostgreSQL: ")
    assert "Connection refused" in why
    assert todo == CHECK
    assert "geheim" not in ended.err


def test_a_url_where_nothing_answers_in_python(command: Command) -> None:
    message = python(command, ENQUEUE, TENURE_DATABASE_URL=NOWHERE)
    assert message.startswith(
        "tenure.errors.Unreachable: cannot connect to a writable PostgreSQL: "
    )
    assert message.endswith(f"; {CHECK}")


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("localhost/shop", "the database URL is not valid: it has no scheme"),
        (
            "mysql://ana:geheim@host/shop",
            "the database URL is not valid: 'mysql' is not supported",
        ),
    ],
)
def test_invalid_url(command: Command, url: str, why: str) -> None:
    todo = "write postgresql://user@host/database"
    ended = command("db", "migrate", TENURE_DATABASE_URL=url)
    assert ended.code == Exit.USAGE
    assert ended.error == ("a setting is missing or wrong", why, todo)
    assert python(command, ENQUEUE, TENURE_DATABASE_URL=url).endswith(f": {why}; {todo}")


NOT_MIGRATED = f"the schema is at version 0, this release needs {len(migrations())}"


def test_missing_schema_on_the_command_line_names_the_fix(bare: Command) -> None:
    ended = bare("job", "list")
    assert ended.code == Exit.SCHEMA
    assert ended.error == (
        "the schema does not match this release",
        NOT_MIGRATED,
        "run: tenure db migrate",
    )


def test_missing_schema_stops_a_worker_with_the_fix(bare: Command) -> None:
    ended = bare("worker", "jobs:app")
    assert ended.code == Exit.FAILED
    assert ended.error == ("the worker cannot start", NOT_MIGRATED, "run: tenure db migrate")


def test_missing_schema_raises_with_the_fix(bare: Command) -> None:
    message = python(bare, ENQUEUE)
    assert message.startswith("tenure.errors.SchemaTooOld: ")
    assert message.endswith("; run: tenure db migrate")


TARGETS = [
    ("job:app", "there is no module 'job' in {here}", "did you mean jobs:app?"),
    ("jobs.py:app", "there is no module 'jobs.py' in {here}", "write jobs:app, without the .py"),
    (
        "shop.tasks:app",
        "there is no module 'shop' in {here}",
        "run it in the directory of your code, or add that directory to PYTHONPATH",
    ),
    (
        "src/jobs:app",
        "'src/jobs:app' does not name a module",
        "write jobs:app for `app` in jobs.py",
    ),
    ("jobs:application", "jobs has no 'application'", "did you mean jobs:app?"),
    ("jobs:hello", "hello in jobs is a Task, not a Tenure()", "did you mean jobs:app?"),
    (
        "json:app",
        "json has no 'app'",
        "write app = Tenure() in json, or name the module that has it",
    ),
]


@pytest.mark.parametrize(("target", "why", "todo"), TARGETS)
def test_an_app_that_is_not_there(command: Command, target: str, why: str, todo: str) -> None:
    ended = command("worker", target, TENURE_DATABASE_URL=NOWHERE)
    assert ended.code == Exit.FAILED
    why = why.format(here=command.directory)
    assert ended.error == ("the worker cannot start", why, todo)


NAME_THE_APP = (
    "add it to the command, such as jobs:app for `app` in jobs.py, or write "
    'app = "jobs:app" in tenure.toml'
)


def test_no_app_at_all(command: Command) -> None:
    ended = command("worker")
    assert ended.code == Exit.USAGE
    assert ended.error == (
        "a setting is missing or wrong",
        "no app is given",
        NAME_THE_APP,
    )


def test_a_module_that_the_code_itself_misses_is_not_a_wrong_app(command: Command) -> None:
    file = command.directory / "jobs.py"
    file.write_text("import requestz\n" + JOBS)
    ended = command("worker", "jobs:app", TENURE_DATABASE_URL=NOWHERE)
    what, why, _ = ended.error
    assert what == "the worker cannot load the app"
    assert why == f"ModuleNotFoundError: No module named 'requestz' ({file}:1)"


def test_an_attribute_that_the_code_itself_misses_is_not_a_wrong_app(command: Command) -> None:
    file = command.directory / "jobs.py"
    file.write_text(f"import os\nos.nothing()\n{JOBS}")
    why = command("worker", "jobs:app", TENURE_DATABASE_URL=NOWHERE).error[1]
    assert why == f"AttributeError: module 'os' has no attribute 'nothing' ({file}:2)"


FIT_OR_CHANGE = "pass one that fits, or change the annotation"


@pytest.mark.parametrize(
    ("call", "why"),
    [
        ("name=3", f"argument 'name' is an int, not a str; {FIT_OR_CHANGE}"),
        ("nam='Ada'", "got an unexpected keyword argument 'nam'; pass its parameters by name"),
        ("'Ada', 'Bob'", "too many positional arguments; pass its parameters by name"),
    ],
)  # fmt: skip
def test_an_argument_of_a_wrong_type_in_python(command: Command, call: str, why: str) -> None:
    message = python(command, f"import jobs; jobs.hello.enqueue({call})")
    called = "hello(name: str) -> str cannot be called so"
    assert message == f"tenure.errors.InvalidValue: {called}: {why}"


def test_an_argument_of_a_wrong_type_on_the_command_line(bare: Command) -> None:
    """The command does not know the task; the worker does, and the job says it at once."""
    bare("db", "migrate")
    bare("job", "enqueue", "jobs.hello", "--args", '{"name": 3}')
    bare("worker", "jobs:app", "--drain")
    shown = bare("job", "show", 1, "--json").json
    assert (shown["job"]["state"], shown["job"]["done_reason"]) == ("failed", "invalid_arguments")
    [attempt] = shown["attempts"]
    assert attempt["error_message"] == (
        "argument 'name' is an int, not a str; enqueue it again with one that fits"
    )


def test_arguments_that_are_not_json_on_the_command_line(bare: Command) -> None:
    ended = bare("job", "enqueue", "jobs.hello", "--args", "{name: Ada}")
    assert ended.code == Exit.USAGE
    assert ended.error[0] == "the arguments are not a JSON object"
    assert ended.error[2] == """write a JSON object, as in --args '{"name": "Ada"}'"""
