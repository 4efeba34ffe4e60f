"""`tenure dev`: a database, a schema and a worker that reloads; and nothing of it is left."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

import tenure._local_postgres
from support.processes import alive, children, die_with_parent, family, wait_for
from tenure import _settings
from tenure.cli import dev as own
from tenure.cli.errors import CommandError, Exit
from tenure.errors import ConfigError
from tests.cli.conftest import Command

if TYPE_CHECKING:
    from collections.abc import Iterator

PATIENCE = 60.0
READY = "Press Ctrl-C to stop"
HELLO = "import jobs; print(jobs.hello.enqueue(name='Ada').wait(timeout=60).result)"


class Developer:
    """A project with a terminal that runs `tenure dev`, and a second terminal."""

    def __init__(self, directory: Path, *, url: str | None = None) -> None:
        self.command = Command(directory, url=url)
        self.directory = directory
        self.log = directory / "dev.log"

    @contextmanager
    def dev(self, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
        """`tenure dev` as long as the block lasts, and no longer, however it ends."""
        with self.log.open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "tenure", "dev", *arguments],
                cwd=self.directory,
                env=self.command.environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=die_with_parent(signal.SIGKILL),  # noqa: PLW1509 - it takes no lock
            )
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    def hears(self, *words: str, times: int = 1) -> None:
        """Return once `tenure dev` has printed this N times."""
        for text in words:
            assert wait_for(lambda: self.printed().count(text) >= times, PATIENCE), self.printed()  # noqa: B023 - called here

    def printed(self) -> str:
        return self.log.read_text()

    def python(self, code: str, *, under: str = ".") -> str:
        """What a program in the project prints, or says as its last word."""
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=self.directory / under,
            env=self.command.environment(PYTHONPATH=str(self.directory)),
            capture_output=True,
            text=True,
            timeout=PATIENCE * 2,
            check=False,
        )
        return done.stdout or "".join(done.stderr.splitlines()[-1:])


@pytest.fixture
def directory() -> Iterator[Path]:
    """A directory that every user can get to: as root, the server is another user's."""
    path = Path(tempfile.mkdtemp(prefix="tenure-dev-"))
    path.chmod(0o755)
    yield path
    wait_for(lambda: not (path / ".tenure/postgres/data/postmaster.pid").exists(), PATIENCE)
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def developer(directory: Path) -> Developer:
    """One without a database."""
    made = Developer(directory)
    made.command("init")
    return made


@pytest.fixture
def settled(directory: Path, empty_database: str) -> Developer:
    """One whose database is configured, and has nothing in it yet."""
    made = Developer(directory, url=empty_database)
    made.command("init")
    return made


def server(directory: Path) -> int:
    return int((directory / ".tenure/postgres/data/postmaster.pid").read_text().split()[0])


@pytest.mark.timeout(300)
def test_without_a_database_one_is_started_and_ends_with_it(developer: Developer) -> None:
    (developer.directory / "deep/er").mkdir(parents=True)
    with developer.dev() as process:
        developer.hears(READY)
        assert "a private PostgreSQL in" in developer.printed()
        assert "migrated: 001_" in developer.printed()
        # The database is its own: the link's token is too.
        assert "/sign-in#" in developer.printed()
        assert tokens(developer) == ["active"]
        assert "worker: jobs:app, 10 slots, queues default, mail" in developer.printed()
        assert developer.python(HELLO) == "Hello Ada\n"
        assert developer.python(HELLO, under="deep/er") == "Hello Ada\n"
        developer.hears("INFO job 2 (jobs.hello): completed, in ")
        assert (developer.directory / ".tenure/database_url").stat().st_mode & 0o777 == 0o600
        assert (developer.directory / ".tenure/.gitignore").read_text() == "*\n"
        everyone = [*family(process.pid), server(developer.directory)]
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == Exit.DONE
    assert not any(alive(pid) for pid in everyone)
    assert "Traceback" not in developer.printed()
    assert "start `tenure dev`" in developer.python(HELLO)
    ended = developer.command("job", "list")
    assert (ended.code, ended.error[2].startswith("start `tenure dev`")) == (Exit.USAGE, True)


@pytest.mark.timeout(300)
def test_the_dashboard_is_there_and_signs_in_by_its_address(settled: Developer) -> None:
    """Shows R35. On loopback alone, once, with a token that is revoked at the end."""
    with settled.dev("--sign-in-link") as process:
        settled.hears(READY)
        found = re.search(r"dashboard: (http://127\.0\.0\.1:\d+)/sign-in#(\S+)", settled.printed())
        assert found is not None
        url, code = found.groups()
        assert httpx.get(f"{url}/", headers={"Accept": "text/html"}).status_code == 401
        with httpx.Client(base_url=url) as browser:
            assert browser.post("/sign-in", data={"token": code}).status_code == 303
            assert "First steps" in browser.get("/").text
        assert httpx.post(f"{url}/sign-in", data={"token": code}).status_code == 401
        again = settled.command("session", "link", "dev", "--url", url).out.strip()
        code = again.partition("#")[2]
        assert httpx.post(f"{url}/sign-in", data={"token": code}).status_code == 303
        assert settled.python(HELLO) == "Hello Ada\n"
        everyone = family(process.pid)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == Exit.DONE
    assert not any(alive(pid) for pid in everyone)
    assert tokens(settled) == ["revoked"]
    with settled.dev("--sign-in-link") as process:
        settled.hears(READY)
        assert tokens(settled) == ["active", "revoked"]
        process.kill()
        assert wait_for(lambda: tokens(settled) == ["revoked", "revoked"], PATIENCE)


@pytest.mark.timeout(300)
def test_in_a_database_of_others_no_token_is_created_and_the_reason_is_printed(
    settled: Developer,
) -> None:
    """The database is configured, so others may use it: they did not ask for an admin token."""
    with settled.dev() as process:
        settled.hears(READY)
        found = re.search(
            r"dashboard: (http://127\.0\.0\.1:\d+), sign in with an access token\n"
            r"\s*no link: a link needs an admin token, and this database is not tenure dev's own\n"
            r"\s*create a token: tenure token create NAME --role admin; "
            r"or run tenure dev --sign-in-link\n",
            settled.printed(),
        )
        assert found is not None, settled.printed()
        assert "sign-in#" not in settled.printed()
        assert tokens(settled) == []
        sessions = settled.command("session", "list", "--json").out
        assert json.loads(sessions)["sessions"] == []
        made = settled.command("token", "create", "ana", "--role", "admin").out.strip()
        assert httpx.post(f"{found[1]}/sign-in", data={"token": made}).status_code == 303
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == Exit.DONE
    assert tokens(settled) == ["active"]


def tokens(developer: Developer) -> list[str]:
    """The states of all access tokens, the newest first."""
    listed = json.loads(developer.command("token", "list", "--json").out)
    return [each["state"] for each in listed["tokens"]]


@pytest.mark.timeout(300)
def test_kill_leaves_nothing_and_the_next_run_continues(developer: Developer) -> None:
    """The worker and the server end by themselves; the job that ran comes back."""
    counting = "handle = jobs.count.using(key='one').enqueue(to=8)"
    running = "while not handle.get().progress: time.sleep(0.05)"
    with developer.dev() as process:
        developer.hears(READY)
        everyone = [*family(process.pid), server(developer.directory)]
        assert developer.python(f"import jobs, time; {counting}\n{running}") == ""
        process.kill()
        assert wait_for(lambda: not any(alive(pid) for pid in everyone), PATIENCE)
    assert "start `tenure dev`" in developer.python(HELLO)
    with developer.dev() as process:
        developer.hears(READY)
        assert "up to date" in developer.printed()
        counted = developer.python(f"import jobs; {counting}; print(handle.wait(90).result)")
        assert counted == "Counted to 8, resumed\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == Exit.DONE


@pytest.mark.timeout(300)
def test_a_change_reloads_and_a_broken_one_waits_for_the_next(settled: Developer) -> None:
    jobs = settled.directory / "jobs.py"
    good = jobs.read_text()
    with settled.dev() as process:
        settled.hears(READY)
        assert "private" not in settled.printed()
        assert not (settled.directory / ".tenure/postgres").exists()
        assert settled.python(HELLO) == "Hello Ada\n"
        jobs.write_text(good + "def (")
        settled.hears(
            "reload failed, old code still running", f"SyntaxError: invalid syntax ({jobs}:"
        )
        assert settled.python("from tenure import Tenure; Tenure().close(); print(1)") == "1\n"
        jobs.write_text(good.replace("Hello {name}", "Good day {name}"))
        settled.hears("INFO reloading", times=2)
        assert wait_for(lambda: settled.python(HELLO) == "Good day Ada\n", PATIENCE)
        # One child continued while the other was broken. Now there is one again, and the dashboard.
        assert wait_for(lambda: len(children(process.pid)) == 2, PATIENCE)
        assert "crashed" not in settled.printed()
        everyone = family(process.pid)
        process.send_signal(signal.SIGHUP)
        assert process.wait(PATIENCE) == Exit.DONE
    assert not any(alive(pid) for pid in everyone)


@pytest.mark.timeout(300)
def test_code_that_is_broken_from_the_beginning_is_waited_for(settled: Developer) -> None:
    jobs = settled.directory / "jobs.py"
    good = jobs.read_text()
    jobs.write_text(good + "1 / 0\n")
    with settled.dev() as process:
        settled.hears("waiting for the next change")
        what, why, todo, _ = settled.printed().splitlines()
        assert what == "error: the app cannot be loaded"
        assert why.startswith("why:   ZeroDivisionError: division by zero (")
        assert todo == "do:    fix the error, and save"
        jobs.write_text(good)
        settled.hears(READY)
        assert settled.python(HELLO) == "Hello Ada\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == Exit.DONE


def test_an_app_that_names_its_database_gets_no_private_one(
    developer: Developer, empty_database: str
) -> None:
    jobs = developer.directory / "jobs.py"
    jobs.write_text(jobs.read_text().replace("Tenure()", f"Tenure({empty_database!r})"))
    with developer.dev():
        developer.hears(READY)
        assert "private" not in developer.printed()
        assert developer.python(HELLO) == "Hello Ada\n"


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("job:app", "did you mean jobs:app?"),
        ("jobs:ap", "did you mean jobs:app?"),
        ("jobs.py:app", "write jobs:app, without the .py"),
    ],
)
def test_an_app_that_is_not_there_ends_it_with_what_to_write(
    developer: Developer, target: str, words: str
) -> None:
    ended = developer.command("dev", target)
    assert ended.code == Exit.USAGE
    assert ended.error[2] == words
    assert _settings.running(developer.directory / ".tenure") is None


def test_without_an_app_it_says_where_to_name_one(developer: Developer) -> None:
    (developer.directory / "tenure.toml").write_text("")
    ended = developer.command("dev")
    assert ended.code == Exit.USAGE
    assert ended.error[1] == "no app is given"


def test_where_no_server_is_installed_it_says_what_to_install_or_to_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tenure._local_postgres, "find_binaries", lambda: None)
    with own.DevDirectory(tmp_path / ".tenure") as directory, pytest.raises(CommandError) as failed:
        directory.start_database()
    assert failed.value.what == "there is no database"
    assert "apt-get install postgresql" in failed.value.todo
    assert 'database_url = "postgresql://user@host/database"' in failed.value.todo


def test_a_second_one_takes_nothing_from_the_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / ".tenure"
    with own.DevDirectory(place):
        with own.DevDirectory(place):
            assert f"already runs here, as process {os.getpid()}" in capsys.readouterr().err
        assert (place / "pid").read_text() == f"{os.getpid()}\n"
    assert (place / "pid").read_text() == ""
    assert _settings.running(place) is None


def test_what_a_killed_one_left_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even if its pid belongs to another process now."""
    for name in ("TENURE_DATABASE_URL", "DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    place = tmp_path / ".tenure"
    place.mkdir()
    (place / "pid").write_text(f"{os.getpid()}\n")
    (place / "database_url").write_text("postgresql://host/gone\n")
    with pytest.raises(ConfigError, match="start `tenure dev`"):
        _settings.database_url()
    with own.DevDirectory(place):
        with pytest.raises(ConfigError, match="start `tenure dev`"):
            _settings.database_url()
        (place / "database_url").write_text("postgresql://host/here\n")
        assert _settings.database_url() == "postgresql://host/here"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's server is another user's")
def test_where_the_servers_user_cannot_go_the_data_are_elsewhere(tmp_path: Path) -> None:
    closed, open_ = tmp_path / "closed", Path(tempfile.gettempdir())
    closed.mkdir(mode=0o700)
    assert own.DevDirectory(closed / ".tenure")._place().parent == Path("/var/lib/tenure")
    assert own.DevDirectory(open_ / ".tenure")._place() == open_ / ".tenure/postgres"
