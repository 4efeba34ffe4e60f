"""An app before its first job: nothing is opened, and the database is found when it is needed."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from tenure import Tenure
from tenure.errors import ConfigError
from tests.app.acts import connections, rows, script

if TYPE_CHECKING:
    from pathlib import Path

ONE, TWO, THREE, FOUR = (f"postgresql://user@host/{name}" for name in ("a", "b", "c", "d"))


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory without a tenure.toml, and an environment that names no database."""
    here = tmp_path / "project" / "src"
    here.mkdir(parents=True)
    monkeypatch.chdir(here)
    monkeypatch.delenv("TENURE_DATABASE_URL", raising=False)
    monkeypatch.delenv("DATABASE_URL", raising=False)
    return here


def toml(directory: Path, text: str) -> Path:
    file = directory / "tenure.toml"
    file.write_text(text)
    return file


def test_making_an_app_and_its_tasks_opens_nothing(url: str) -> None:
    threads = threading.active_count()
    app = Tenure(url)

    @app.task(queue="mail")
    def hello(name: str) -> str:
        return f"Hello {name}"

    assert hello("Ada") == "Hello Ada"
    assert hello.using(priority=9).bind(name="Ada").job.args == {"name": "Ada"}
    assert app.engine.url == url
    assert connections(url) == []
    assert threading.active_count() == threads


def test_a_task_can_be_defined_and_called_where_there_is_no_database() -> None:
    app = Tenure()

    @app.task
    def double(n: int) -> int:
        return 2 * n

    assert double(2) == 4
    with pytest.raises(ConfigError):
        double.enqueue(2)


def test_an_import_reads_no_settings(nowhere: Path) -> None:
    toml(nowhere, "this is = no toml")
    done = script(nowhere, "import tenure; tenure.Tenure(); print('made')")
    assert (done.stdout, done.stderr) == ("made\n", "")


def test_closing_an_app_that_opened_nothing_does_nothing(nowhere: Path) -> None:
    toml(nowhere, "this is = no toml")
    Tenure().close()


async def test_aclosing_an_app_that_opened_nothing_does_nothing() -> None:
    await Tenure().aclose()


def test_the_database_is_the_argument_then_the_environment_then_the_file(
    nowhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toml(nowhere, f"database_url = '{FOUR}'")
    assert Tenure().engine.url == FOUR
    monkeypatch.setenv("DATABASE_URL", THREE)
    assert Tenure().engine.url == THREE
    monkeypatch.setenv("TENURE_DATABASE_URL", TWO)
    assert Tenure().engine.url == TWO
    assert Tenure(ONE).engine.url == ONE


def test_an_empty_variable_is_as_good_as_none(
    nowhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toml(nowhere, f"database_url = '{FOUR}'")
    monkeypatch.setenv("TENURE_DATABASE_URL", "")
    monkeypatch.setenv("DATABASE_URL", "")
    assert Tenure().engine.url == FOUR


def test_the_file_is_looked_for_here_and_above_and_the_nearest_counts(nowhere: Path) -> None:
    toml(nowhere.parent.parent, f"database_url = '{THREE}'")
    assert Tenure().engine.url == THREE
    toml(nowhere.parent, f"database_url = '{FOUR}'")
    assert Tenure().engine.url == FOUR


def test_the_environment_is_read_when_the_database_is_first_needed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = Tenure()
    monkeypatch.setenv("DATABASE_URL", ONE)
    assert app.engine.url == ONE
    monkeypatch.setenv("DATABASE_URL", TWO)
    assert app.engine.url == ONE


@pytest.mark.parametrize("text", [None, "", "queues = ['mail']", "database_url = ''"])
def test_without_a_database_the_error_says_what_to_set(nowhere: Path, text: str | None) -> None:
    if text is not None:
        toml(nowhere, text)
    with pytest.raises(ConfigError) as refused:
        _ = Tenure().engine
    assert str(refused.value) == (
        f"no database is configured, and no `tenure dev` runs in {nowhere}; start `tenure dev`, "
        "or set TENURE_DATABASE_URL=postgresql://user@host/database, or write "
        'database_url = "postgresql://user@host/database" in tenure.toml'
    )


def test_a_file_that_cannot_be_read_is_named(nowhere: Path) -> None:
    file = toml(nowhere, "database_url = no quotes")
    with pytest.raises(ConfigError) as refused:
        _ = Tenure().engine
    assert str(refused.value).startswith(f"{file} cannot be read: ")
    assert str(refused.value).endswith("; fix the file")


@pytest.mark.parametrize(
    "address",
    [
        "mysql://root:geheim@host/shop",
        "mysql://root:geheim@host/shop?charset=utf8mb4",
        "postgresql+psycopg://root:geheim@host/shop",
        "sqlite:///shop.db",
        "shop",
    ],
)
def test_another_kind_of_database_is_refused_with_what_to_give(address: str) -> None:
    with pytest.raises(ConfigError, match="postgresql://") as refused:
        _ = Tenure(address).engine
    assert "geheim" not in str(refused.value)


def test_a_url_that_libpq_cannot_read_is_refused_without_its_password() -> None:
    """Prisma and others put parameters of their own into the URL."""
    app = Tenure("postgresql://root:geheim@host/shop?schema=public")

    @app.task
    def hello() -> None: ...

    with pytest.raises(ConfigError, match="postgresql://") as refused:
        hello.enqueue()
    assert "geheim" not in str(refused.value)


def test_a_libpq_connection_string_is_taken_too(url: str) -> None:
    address = url.removeprefix("postgresql://postgres@").replace(":", "/").split("/")
    host, port, database = address
    app = Tenure(f"host={host} port={port} dbname={database} user=postgres")

    @app.task(name="hello")
    def hello() -> None: ...

    hello.enqueue()
    app.close()
    assert [each["task"] for each in rows(url)] == ["hello"]
