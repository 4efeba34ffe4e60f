"""An error has three lines, without a traceback and without a password."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from tenure import errors
from tenure.cli.errors import Exit, failure, hidden

if TYPE_CHECKING:
    from support.cluster import Cluster
    from support.store import Database
    from tests.cli.conftest import Command

NOT_LISTENING = "127.0.0.1:1/none"


def test_without_a_database_the_command_says_how_to_name_one(command: Command) -> None:
    ended = command("job", "list")
    assert ended.code == Exit.USAGE
    assert len(ended.err.splitlines()) == 3
    assert "TENURE_DATABASE_URL" in ended.error[2]


def test_a_server_that_is_not_there_is_unreachable_and_at_once(command: Command) -> None:
    started = time.monotonic()
    ended = command("db", "status", "--database-url", f"postgresql://{NOT_LISTENING}")
    assert ended.code == Exit.UNREACHABLE
    assert len(ended.err.splitlines()) == 3
    assert ended.error[0] == "the database did not answer"
    assert time.monotonic() - started < 10


def test_a_schema_that_does_not_fit_names_the_command_to_run(bare: Command) -> None:
    ended = bare("job", "list")
    assert ended.code == Exit.SCHEMA
    assert ended.error[2] == "run: tenure db migrate"


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://ana:geheim@{NOT_LISTENING}",
        f"postgresql://ana:geheim/wort@{NOT_LISTENING}",
        f"postgresql://ana:geheim%2Fwort@{NOT_LISTENING}",
        f"postgresql://ana:geheim@wort@{NOT_LISTENING}",
        f"postgresql://ana@{NOT_LISTENING}?password=geheim",
        f"postgresql://ana:x@{NOT_LISTENING}?geheim=geheim",
        "host=127.0.0.1 port=1 password=geheim",
        "host=127.0.0.1 port=geheim password=geheim",
        "mysql://ana:geheim@host/db",
        "postgresql:ana:geheim@host/db",
        "ana:geheim@host/db",
    ],
)
def test_a_password_is_never_printed(command: Command, url: str) -> None:
    ended = command("db", "status", DATABASE_URL=url)
    assert ended.code in {Exit.UNREACHABLE, Exit.USAGE}
    assert len(ended.err.splitlines()) == 3
    assert "geheim" not in ended.out + ended.err


def test_a_password_that_the_server_refuses_is_not_printed_either(
    command: Command, db: Database, cluster: Cluster
) -> None:
    url = cluster.url("no-such-database")
    scheme, _, rest = url.partition("://")
    ended = command(
        "db", "status", "--database-url", f"{scheme}://ana:geheim@{rest.rpartition('@')[2]}"
    )
    assert ended.code == Exit.UNREACHABLE
    assert "geheim" not in ended.err


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("to postgresql://ana:x@h/d now", "to postgresql://ana:…@h/d now"),
        ("host=h password=x user=ana", "host=h password=… user=ana"),
        ("host=h password='a b' user=ana", "host=h password=… user=ana"),
        ("nothing to hide: ana@h", "nothing to hide: ana@h"),
    ],
)
def test_passwords_are_hidden_wherever_a_url_stands(text: str, expected: str) -> None:
    assert hidden(text) == expected


KINDS = {
    errors.SchemaTooOld("old; run: tenure db migrate"): Exit.SCHEMA,
    errors.SchemaTooNew("new; upgrade tenure"): Exit.SCHEMA,
    errors.OutcomeUnknown("cut off; ask again"): Exit.UNREACHABLE,
    errors.Unreachable("away; check"): Exit.UNREACHABLE,
    errors.QueryFailed("no", sqlstate="42501", statement="enqueue"): Exit.NOT_ALLOWED,
    errors.QueryFailed("no", sqlstate="40P01", statement="enqueue"): Exit.CONFLICT,
    errors.QueryFailed("no", sqlstate="XX000", statement="enqueue"): Exit.FAILED,
    errors.ConfigError("nothing set; set it"): Exit.USAGE,
    errors.InvalidValue("too large"): Exit.USAGE,
    errors.PayloadError("no JSON"): Exit.USAGE,
    errors.LeaseLost("lost; stop"): Exit.FAILED,
    errors.NotReady("not yet"): Exit.FAILED,
    errors.JobFailed("broken; see", "attempts", None): Exit.FAILED,
    errors.JobCancelled("over; see", "enough"): Exit.FAILED,
}


@pytest.mark.parametrize("error", KINDS, ids=lambda error: type(error).__name__)
def test_every_error_has_its_exit_code_and_its_three_lines(error: errors.TenureError) -> None:
    printed = failure(error)
    assert printed.code == KINDS[error]
    assert printed.what
    assert printed.why
    assert printed.todo


@pytest.mark.parametrize(
    "wrong", [["jib"], ["job"], ["job", "list", "--stat"], ["job", "show", "x"], ["job", "hold"]]
)
def test_a_command_line_that_is_not_understood_says_where_help_is(
    command: Command, wrong: list[str]
) -> None:
    ended = command(*wrong)
    assert (ended.code, ended.out) == (Exit.USAGE, "")
    assert len(ended.err.splitlines()) == 3
    assert ended.error[2].endswith("--help")


@pytest.mark.parametrize("arguments", [["job", "list"], ["db", "status"]])
def test_missing_driver_names_the_package_to_install(tenure: Command, arguments: list[str]) -> None:
    ended = tenure(*arguments, PSYCOPG_IMPL="none")
    assert ended.code == Exit.FAILED
    assert len(ended.err.splitlines()) == 3
    assert 'pip install "tenure[binary]"' in ended.error[2]


def test_migrations_as_text_need_no_driver(tenure: Command) -> None:
    assert "CREATE SCHEMA" in tenure("db", "sql", PSYCOPG_IMPL="none").out


def test_help_and_version_need_no_database(command: Command) -> None:
    assert "worker" in command("--help").out
    assert command().out == command("--help").out
    assert command("--version").out.startswith("tenure 0")


def test_help_loads_neither_a_driver_nor_rich(command: Command) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "tenure", "job", "--help"],
        env=command.environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "typer" in loaded
    assert not loaded & {"psycopg", "rich", "tenure.app", "tenure.admin"}


def test_closed_reader_is_not_an_error(command: Command) -> None:
    reading, writing = os.pipe()
    with subprocess.Popen(
        [sys.executable, "-m", "tenure", "db", "sql"],
        env=command.environment(),
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        os.close(writing)
        os.close(reading)
        _, words = process.communicate(timeout=60)
    assert "Traceback" not in words
    assert "Exception ignored" not in words


async def test_an_interrupt_ends_the_command_by_its_own_code(db: Database, tenure: Command) -> None:
    """The command is seen waiting for a lock before it is interrupted."""
    locker = await db.caller("locker")
    async with locker.transaction():
        await locker.connection.execute("LOCK TABLE tenure.job IN ACCESS EXCLUSIVE MODE")
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "tenure", "job", "list"),
            env=tenure.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        await db.until_blocked("tenure")
        process.send_signal(signal.SIGINT)
        _, words = await process.communicate()
    assert process.returncode == Exit.INTERRUPTED
    assert b"Traceback" not in words


def test_no_color_is_printed_without_a_terminal_or_when_unwanted(tenure: Command) -> None:
    tenure("job", "enqueue", "work")
    for environment in ({}, {"NO_COLOR": "1", "FORCE_COLOR": "1"}):
        assert "\x1b[3" not in tenure("job", "list", **environment).out
