"""A private server is shared by all who start it in a directory, and ends with the last of them."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from support.binaries import ROOT
from support.processes import alive, send, wait_for
from tenure._local_postgres import PrivatePostgres, find_binaries
from tenure._local_postgres import server as server_module
from tenure._local_postgres.directory import server_status
from tenure._local_postgres.server import binaries_for
from tenure.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

USES = """
import sys, time
from pathlib import Path
from tenure._local_postgres import PrivatePostgres
server = PrivatePostgres(Path(sys.argv[1]), durable=False)
print(server.start(), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def directory() -> Iterator[Path]:
    """Where a server may be; not in tmp_path, which root keeps to itself."""
    base = Path(tempfile.mkdtemp(prefix="tenure-test-"))
    base.chmod(0o755)
    yield base / "server"
    shutil.rmtree(base, ignore_errors=True)


def ask(url: str, query: str) -> Any:
    with psycopg.connect(url) as connection:
        row = connection.execute(query.encode()).fetchone()
    return row[0] if row else None


def pid(directory: Path) -> int:
    return int(server_status(directory)[0])


def user(
    directory: Path, *, as_user: int | None = None, python: str = sys.executable
) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [python, "-c", USES, str(directory)],
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        user=as_user,
    )


def test_it_answers_on_a_socket_that_only_its_user_can_reach_and_on_no_port(
    directory: Path,
) -> None:
    with PrivatePostgres(directory, durable=False) as server:
        assert ask(server.url(), "SHOW listen_addresses") == ""
        sockets = Path(server_status(directory)[4])
        assert sockets.stat().st_mode & 0o777 == 0o700
        assert (sockets / ".s.PGSQL.5432").is_socket()


def test_what_is_not_durable_is_gone_when_it_is_stopped(directory: Path) -> None:
    server = PrivatePostgres(directory, durable=False)
    server.start()
    postmaster = pid(directory)

    server.stop()

    assert not alive(postmaster)
    assert wait_for(lambda: list(directory.parent.iterdir()) == [], 30)


def test_what_is_durable_is_there_after_the_next_start(directory: Path) -> None:
    with PrivatePostgres(directory, durable=True) as server:
        assert ask(server.url(), "SHOW fsync") == "on"
        with psycopg.connect(server.url()) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 7 AS n")
        postmaster = pid(directory)
    assert not alive(postmaster)

    with PrivatePostgres(directory, durable=True) as server:
        assert ask(server.url(), "SELECT n FROM kept") == 7


def test_it_runs_as_long_as_one_of_its_users_has_not_stopped_it(directory: Path) -> None:
    one, other = (PrivatePostgres(directory, durable=False) for _ in range(2))
    url = one.start()
    assert other.start() == url

    one.stop()
    assert ask(url, "SELECT 1") == 1

    other.stop()
    assert not directory.exists()


def test_those_who_start_it_at_the_same_time_share_one_server(directory: Path) -> None:
    users = [user(directory) for _ in range(4)]
    try:
        urls = {each.stdout.readline().strip() for each in users if each.stdout}
        started = {ask(url, "SELECT pg_postmaster_start_time()") for url in urls}
        assert len(urls) == len(started) == 1
    finally:
        for each in users:
            each.communicate(timeout=60)
    assert wait_for(lambda: not directory.exists(), 30)


def test_it_ends_when_its_last_user_is_killed(directory: Path) -> None:
    using = user(directory)
    assert using.stdout
    using.stdout.readline()
    postmaster = pid(directory)

    using.kill()
    using.communicate()

    assert wait_for(lambda: not alive(postmaster) and not directory.exists(), 30)


def test_it_ends_with_its_minder_and_can_be_started_again(directory: Path) -> None:
    server = PrivatePostgres(directory, durable=True)
    server.start()
    postmaster = pid(directory)
    status = Path(f"/proc/{postmaster}/status").read_text()
    [minder] = re.findall(r"PPid:\s+(\d+)", status)

    send(int(minder), signal.SIGKILL)
    assert wait_for(lambda: not alive(postmaster), 30)

    assert ask(server.start(), "SELECT 1") == 1
    server.stop()


def test_a_directory_with_too_long_a_path_has_its_socket_elsewhere(directory: Path) -> None:
    deep = directory / ("d" * 100)
    directory.mkdir()
    with PrivatePostgres(deep, durable=False) as server:
        assert ask(server.url(), "SELECT 1") == 1
        elsewhere = Path(server_status(deep)[4])
        assert elsewhere.stat().st_mode & 0o777 == 0o700
    assert not elsewhere.exists()


def test_a_directory_with_other_things_in_it_is_refused(directory: Path) -> None:
    directory.mkdir()
    (directory / "thesis.tex").touch()
    with pytest.raises(ConfigError, match="choose an empty or new directory"):
        PrivatePostgres(directory, durable=False).start()
    assert (directory / "thesis.tex").exists()


def test_data_of_a_version_that_is_not_installed_are_left_alone(directory: Path) -> None:
    data = directory / "data"
    data.mkdir(parents=True)
    (data / "PG_VERSION").write_text("99\n")
    with pytest.raises(ConfigError, match=r"needs PostgreSQL 99.*apt-get install postgresql-99"):
        binaries_for(data)


def test_missing_server_binaries_name_the_package_to_install(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenure._local_postgres.server._candidates", lambda: iter(()))
    assert find_binaries() is None
    with pytest.raises(ConfigError, match="apt-get install postgresql"):
        PrivatePostgres(directory, durable=False).start()


def test_a_server_that_does_not_start_says_why(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(server_module._SETTINGS, "max_connections", "none at all")
    server = PrivatePostgres(directory, durable=False)
    with pytest.raises(ConfigError, match="max_connections"):
        server.start()
    with pytest.raises(ConfigError, match=r"call start\(\) first"):
        server.url()


def test_a_log_that_is_a_symbolic_link_is_refused(directory: Path) -> None:
    victim = directory.parent / "victim"
    victim.write_text("untouched")
    directory.mkdir()
    (directory / "gate").touch()
    (directory / "log").symlink_to(victim)
    with pytest.raises(ConfigError, match="log must be a file, got a symbolic link; remove it"):
        PrivatePostgres(directory, durable=True).start()
    assert victim.read_text() == "untouched"


def test_the_daemon_imports_no_module_from_its_directory(directory: Path) -> None:
    directory.mkdir()
    (directory / "gate").touch()
    (directory / "ctypes.py").write_text("raise SystemExit('planted code ran')")
    with PrivatePostgres(directory, durable=True) as server:
        assert ask(server.url(), "SELECT 1") == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has files that the server may not replace")
def test_roots_files_are_in_a_directory_that_the_servers_user_cannot_write(directory: Path) -> None:
    other_user = pwd.getpwnam("postgres")
    # As a version before this rule left it.
    directory.mkdir(mode=0o700)
    (directory / "gate").touch()
    os.chown(directory, other_user.pw_uid, other_user.pw_gid)
    with PrivatePostgres(directory, durable=True):
        owned = {each.name: each.stat().st_uid for each in directory.iterdir()}
        plant = subprocess.run(
            ["/bin/ln", "-sfn", "/etc/hostname", str(directory / "log")],
            check=False,
            user=other_user.pw_uid,
            capture_output=True,
        )
    assert directory.stat().st_uid == 0
    assert {name for name, uid in owned.items() if uid != 0} == {"data", "sockets"}
    assert plant.returncode != 0
    assert not (directory / "log").is_symlink()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can change its user")
def test_who_is_not_root_runs_it_as_himself(directory: Path) -> None:
    other_user = pwd.getpwnam("nobody")
    os.chown(directory.parent, other_user.pw_uid, other_user.pw_gid)
    try:
        # That user may not reach root's own Python.
        using = user(directory, as_user=other_user.pw_uid, python="/usr/bin/python3")
    except OSError:
        pytest.skip("no Python of the system's")
    assert using.stdout
    url = using.stdout.readline().strip()
    try:
        assert ask(url, "SELECT 1") == 1
        assert Path(f"/proc/{pid(directory)}").stat().st_uid == other_user.pw_uid
    finally:
        using.communicate(timeout=60)
    assert wait_for(lambda: not directory.exists(), 30)
