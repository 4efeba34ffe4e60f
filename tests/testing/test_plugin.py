"""The plugin in other people's suites: a database for each test, nothing where it is not used."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from support.binaries import ROOT
from tenure.errors import ConfigError
from tenure.testing import databases
from tenure.testing.databases import clear, database, server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.cluster import Cluster

pytestmark = pytest.mark.timeout(
    400
)  # A whole run of pytest in each, on a machine that may be busy.
JOBS = """
from tenure import Job, Tenure

app = Tenure()

@app.task
def greet(name: str) -> str:
    return f"Hello {name}"
"""
TESTS = """
import pytest
from jobs import greet
from tenure.testing import assert_enqueued, assert_not_enqueued, drain

@pytest.mark.parametrize("name", ["Ada", "Bob", "Cyd", "Dee"])
def test_each_test_begins_with_nothing(tenure_app, name):
    assert_not_enqueued(greet)
    handle = greet.enqueue(name=name)
    assert_enqueued(greet, count=1)
    assert drain(tenure_app).completed == 1
    assert handle.wait().result == f"Hello {name}"
"""


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A sample project whose suite is run as its author would, in a process of its own."""
    for name in ("TENURE_TEST_DATABASE_URL", "TENURE_DATABASE_URL", "DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    pytester.makepyfile(jobs=JOBS, test_jobs=TESTS)
    pytester.makeini(
        "[pytest]\ntenure_app = jobs:app\npythonpath = .\nfilterwarnings = error\n"
        "asyncio_mode = auto\nasyncio_default_fixture_loop_scope = function"
    )
    return pytester


def run(project: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    # The plugin of Schemathesis would cost every run two seconds.
    return project.runpytest_subprocess("-p", "no:randomly", "-p", "no:schemathesis", *arguments)


@pytest.fixture
def temporary(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where the private server of a run is; the server's user must be able to get there."""
    directory = Path(tempfile.mkdtemp(prefix="tenure-test-"))
    directory.chmod(0o755)
    monkeypatch.setenv("TMPDIR", str(directory))
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


def test_each_test_has_the_named_app_on_an_empty_database_of_a_private_server(
    project: pytest.Pytester, temporary: Path
) -> None:
    run(project).assert_outcomes(passed=4)
    assert list(temporary.glob("tenure_test_*")) == []


def test_with_xdist_all_processes_share_one_server_and_each_has_its_database(
    project: pytest.Pytester, temporary: Path
) -> None:
    project.makepyfile(
        test_where="""
        import pathlib, psycopg, pytest

        @pytest.mark.parametrize("n", range(8))
        def test_where(tenure_database, worker_id, n):
            with psycopg.connect(tenure_database) as connection:
                [found] = connection.execute(
                    "SELECT pg_postmaster_start_time(), current_database()"
                ).fetchall()
            pathlib.Path(__file__).with_name(f"{worker_id}.txt").write_text(f"{found}")
        """
    )
    run(project, "-n2", "--dist=each").assert_outcomes(passed=24)
    seen = [eval_(path) for path in project.path.glob("gw*.txt")]
    assert len({started for started, _ in seen}) == 1
    assert len({name for _, name in seen}) == 2
    assert list(temporary.glob("tenure_test_*")) == []


def eval_(path: Path) -> tuple[str, str]:
    started, _, name = path.read_text().rpartition(", ")
    return started, name


def test_a_named_server_gets_databases_of_its_own_and_keeps_none(
    project: pytest.Pytester, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TENURE_TEST_DATABASE_URL", cluster.url())
    run(project).assert_outcomes(passed=4)
    with psycopg.connect(cluster.url()) as connection:
        found = connection.execute(
            "SELECT datname FROM pg_database WHERE datname LIKE 'tenure_test_%'"
        ).fetchall()
        assert found == []
        assert connection.execute("SELECT to_regclass('tenure.job')").fetchone() == (None,)


def test_async_tests_leave_no_warnings(project: pytest.Pytester) -> None:
    project.makepyfile(
        test_jobs="""
        from jobs import greet
        from tenure.testing import aassert_enqueued, adrain

        async def test_async(tenure_app):
            await greet.aenqueue(name="Ada")
            await aassert_enqueued(greet)
            assert (await adrain(tenure_app)).completed == 1

        async def test_again(tenure_app):
            await greet.aenqueue(name="Bob")
            await aassert_enqueued(greet, count=1)
        """
    )
    result = run(project)
    result.assert_outcomes(passed=2)
    assert "Warning" not in result.stdout.str() + result.stderr.str()


def test_tables_of_ones_own_are_made_once_and_another_schema_is_installed(
    project: pytest.Pytester,
) -> None:
    project.makepyfile(jobs=JOBS.replace("Tenure()", "Tenure(schema='queue')"))
    project.makeconftest(
        """
        import psycopg, pytest

        @pytest.fixture(scope="session")
        def tenure_prepare():
            def prepare(url):
                with psycopg.connect(url) as connection:
                    connection.execute("CREATE TABLE orders (id int)")
            return prepare
        """
    )
    project.makepyfile(
        test_more="""
        import psycopg

        def test_orders(tenure_database):
            with psycopg.connect(tenure_database) as connection:
                assert connection.execute("SELECT count(*) FROM orders").fetchone() == (0,)
        """
    )
    run(project).assert_outcomes(passed=5)


def test_missing_app_names_the_fix(project: pytest.Pytester) -> None:
    project.makeini("[pytest]\npythonpath = .")
    result = run(project, "-x")
    result.stdout.fnmatch_lines(["*write tenure_app = module:attribute*"])


def test_missing_app_name_is_reported(project: pytest.Pytester) -> None:
    project.makeini("[pytest]\npythonpath = .\ntenure_app = jobs:wrong")
    result = run(project, "-x")
    result.stdout.fnmatch_lines(["*jobs has no 'wrong'; did you mean jobs:app?*"])


def test_a_suite_that_uses_none_of_it_loads_no_driver(project: pytest.Pytester) -> None:
    project.makepyfile(
        test_jobs="""
        import sys

        def test_nothing_is_loaded():
            ours = {name for name in sys.modules if name.startswith("tenure")}
            assert ours == {"tenure", "tenure.testing", "tenure.testing.plugin"}
            assert "psycopg" not in sys.modules
        """
    )
    run(project).assert_outcomes(passed=1)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can change its user")
def test_who_is_not_root_has_a_private_server_too(temporary: Path) -> None:
    other_user = pwd.getpwnam("nobody")
    os.chown(temporary, other_user.pw_uid, other_user.pw_gid)
    program = (
        "from tenure._local_postgres import PrivatePostgres, find_binaries; "
        "from pathlib import Path; "
        "import sys; s = PrivatePostgres(Path(sys.argv[1]), durable=False); "
        "assert s.start().startswith('postgresql://'); s.stop()"
    )
    done = subprocess.run(
        ["/usr/bin/python3", "-c", program, str(temporary / "server")],
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        user=other_user.pw_uid,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """No setting of the machine's that would choose a server."""
    for name in ("TENURE_TEST_DATABASE_URL", "TENURE_DATABASE_URL", "DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return monkeypatch


def test_a_configured_database_is_taken_only_if_it_is_one_for_tests(
    settings: pytest.MonkeyPatch,
) -> None:
    settings.setattr(databases, "find_binaries", lambda: None)
    settings.setenv("DATABASE_URL", "postgresql://app@db.example/shop_test")
    with server("run") as url:
        assert url == "postgresql://app@db.example/shop_test"
    settings.setenv("DATABASE_URL", "postgresql://app:secret@db.example/shop")
    with pytest.raises(ConfigError, match="set TENURE_TEST_DATABASE_URL=") as caught:
        server("run").__enter__()
    assert "secret" not in str(caught.value)


def test_role_without_createdb_is_refused_with_the_fix(cluster: Cluster) -> None:
    with psycopg.connect(cluster.url(), autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS meek")
        connection.execute("CREATE ROLE meek LOGIN")
    url = cluster.url().replace("postgres@", "meek@")
    with pytest.raises(ConfigError, match="ALTER ROLE … CREATEDB"):
        database(url, "refused").__enter__()


def test_no_other_database_is_ever_emptied(cluster: Cluster) -> None:
    with pytest.raises(ConfigError, match="must start with tenure_test_"):
        clear(cluster.url())
