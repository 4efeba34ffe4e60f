"""tenure.toml chooses the database and the code, so only its user may have written it."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING

import pytest

from tenure import _settings
from tenure._settings import resolve
from tenure.cli.init import init
from tenure.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

OTHER_USER = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [*os.environ]:
        if name.startswith("TENURE_") or name == "DATABASE_URL":
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(_settings, "_warned", set())
    return tmp_path


def write(directory: Path, text: str = 'app = "this:app"', mode: int = 0o644) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / "tenure.toml"
    file.write_text(text)
    file.chmod(mode)
    return file


def refusal() -> str:
    with pytest.raises(ConfigError) as refused:
        resolve("app")
    return str(refused.value)


@as_root
def test_file_of_another_user_in_a_directory_above_is_refused(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The attack: a shared directory with a tenure.toml, and a victim who works below it."""
    file = write(here / "shared")
    os.chown(file, OTHER_USER, OTHER_USER)
    (here / "shared/victim").mkdir()
    monkeypatch.chdir(here / "shared/victim")
    message = refusal()
    assert message.startswith(
        f"{file} must be owned by you (user 0) or root, got user {OTHER_USER}"
    )
    assert message.endswith(f"chown 0 {file}")


@as_root
def test_link_of_another_user_to_a_file_of_your_own_is_refused(here: Path) -> None:
    own = write(here / "elsewhere")
    link = here / "tenure.toml"
    link.symlink_to(own)
    assert resolve("app") == "this:app"
    os.chown(link, OTHER_USER, OTHER_USER, follow_symlinks=False)
    assert f"got user {OTHER_USER}" in refusal()


@as_root
def test_file_of_root_is_read_by_every_user(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(here)
    monkeypatch.setattr(os, "geteuid", lambda: OTHER_USER)
    assert resolve("app") == "this:app"


@pytest.mark.parametrize("mode", [0o664, 0o646, 0o620, 0o602])
def test_file_that_others_may_write_is_refused(here: Path, mode: int) -> None:
    file = write(here, mode=mode)
    message = refusal()
    assert f"must be writable by its owner only, got mode {mode:o}" in message
    assert message.endswith(f"run: chmod go-w {file}")


def test_an_argument_or_a_variable_needs_no_file(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(here, mode=0o666)
    monkeypatch.setenv("TENURE_APP", "mine:app")
    assert resolve("app") == "mine:app"


@pytest.mark.parametrize(
    ("below", "found"), [("a/b", True), ("home/b", False), ("work/b", False), ("work", False)]
)
def test_search_upward_ends_at_home_and_at_a_repository(
    here: Path, monkeypatch: pytest.MonkeyPatch, below: str, found: bool
) -> None:
    write(here)
    (here / below).mkdir(parents=True)
    (here / "work/.git").mkdir(parents=True, exist_ok=True)
    monkeypatch.setenv("HOME", str(here / "home"))
    monkeypatch.chdir(here / below)
    assert resolve("app") == ("this:app" if found else None)


@pytest.mark.parametrize("place", ["home", "work"])
def test_search_upward_includes_the_directory_where_it_ends(
    here: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    write(here / place)
    (here / "work/.git").mkdir(parents=True, exist_ok=True)
    (here / place / "deep/er").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(here / "home"))
    monkeypatch.chdir(here / place / "deep/er")
    assert resolve("app") == "this:app"


def test_search_upward_ends_at_a_mount_point(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # /proc is a file system of its own on every Linux.
    monkeypatch.delenv("HOME")
    monkeypatch.chdir("/proc/self")
    assert [str(each) for each in _settings._upwards()][-1] == "/proc"


@pytest.mark.parametrize(
    "text",
    [
        'database_url = "postgresql://ana:geheim@host/shop"',
        'database_url = "postgresql://ana@host/shop?password=geheim"',
        'database_url = "host=db user=ana password=geheim"',
        'redis_url = "redis://:geheim@host/0"',
    ],
)
def test_password_that_every_user_can_read_is_warned_about_once(
    here: Path, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    file = write(here, text)
    with caplog.at_level(logging.WARNING, "tenure"):
        resolve("app")
        resolve("app")
    assert caplog.messages == [
        f"{file} has a password and every user can read it; run: chmod o-r {file}"
    ]
    assert _settings.exposed_file() == file


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ('database_url = "postgresql://ana:geheim@host/shop"', 0o640),
        ('database_url = "postgresql://ana@host:5432/shop"', 0o644),
        ('database_url = "postgresql://ana@host/shop?passfile=/run/pass"', 0o644),
        ('app = "this:app"', 0o644),
    ],
)
def test_file_without_a_password_or_for_few_readers_is_not_warned_about(
    here: Path, text: str, mode: int, caplog: pytest.LogCaptureFixture
) -> None:
    write(here, text, mode)
    resolve("app")
    assert caplog.messages == []
    assert _settings.exposed_file() is None


def test_init_writes_a_file_that_is_accepted_under_any_umask(here: Path) -> None:
    before = os.umask(0)
    try:
        init(here / "new")
    finally:
        os.umask(before)
    assert (here / "new/tenure.toml").stat().st_mode & 0o777 == 0o644
