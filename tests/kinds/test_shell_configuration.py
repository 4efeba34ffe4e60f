"""What a worker's `[kinds.shell]` may say, and what a job may ask for, before anything runs."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from tenure import Tenure
from tenure.errors import ConfigError, InvalidValue
from tenure.kinds import shell
from tenure.kinds.shell import configuration, guard
from tests.kinds.shell_acts import PYTHON, USER, configure

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"allow": []}, "kinds.shell.allow must be a list of executables, got none"),
        ({"allow": "x"}, "kinds.shell.allow must be a list of strings, got 'x'"),
        ({"allow": ["pg_dump"]}, "must be a list of absolute paths without patterns"),
        ({"allow": ["/usr/bin/*"]}, "must be a list of absolute paths without patterns"),
        ({"allow": ["/usr/../bin/sh"]}, "must be a list of absolute paths without patterns"),
        ({"allow": ["/no/such/program"]}, "'/no/such/program': No such file or directory"),
        ({"allow": ["/etc/passwd"]}, "which this worker cannot execute"),
        ({"allow": ["/etc"]}, "which this worker cannot execute"),
        ({"cwd": ["/no/such/place"]}, "kinds.shell.cwd must be a list of directories"),
        ({"env": ["LD_PRELOAD"]}, "kinds.shell.env must be a list of variable names"),
        ({"env": ["TENURE_DATABASE_URL"]}, "kinds.shell.env must be a list of variable names"),
        ({"secrets": ["a-b"]}, "kinds.shell.secrets must be a list of secrets' names"),
        ({"umask": 77}, "kinds.shell.umask must be an octal string, got 77"),
        ({"umask": "9"}, "kinds.shell.umask must be an octal string, got '9'"),
        ({"memory": "much"}, "kinds.shell.memory must be a memory size, got 'much'"),
        ({"cpu": 0}, "kinds.shell.cpu must be a whole number from 1, got 0"),
        ({"processes": True}, "kinds.shell.processes must be a whole number from 1, got True"),
        ({"sandbox": "docker"}, "kinds.shell.sandbox must be \"bwrap\", got 'docker'"),
        ({"network": "no"}, "kinds.shell.network must be true or false, got 'no'"),
        ({"user": "no-such-user"}, "kinds.shell.user must be a user of this machine"),
        ({"user": 5}, "kinds.shell.user must be a user's name, got 5"),
        ({"alow": []}, "kinds.shell.alow is not a setting; the settings are allow, cwd, env"),
    ],
)
def test_invalid_setting_is_refused(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], expected: str
) -> None:
    configure(monkeypatch, **settings)
    with pytest.raises(ConfigError) as error:
        shell.prepare()
    assert expected in str(error.value)
    assert "; " in str(error.value)


def test_worker_that_is_not_configured_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENURE_KINDS_SHELL", json.dumps({"user": USER}))
    with pytest.raises(ConfigError, match="allow must be a list of executables"):
        shell.prepare()


def test_file_that_everyone_can_change_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o757)
    configure(monkeypatch, allow=[str(script)])
    with pytest.raises(ConfigError, match=f"chmod o-w {script}"):
        shell.prepare()


def test_shell_in_the_list_is_reported(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    configure(monkeypatch, allow=["/bin/sh"])
    shell.prepare()
    assert "kinds.shell.allow has /bin/sh, so jobs can run any command" in caplog.text


@pytest.mark.skipif(os.geteuid() != 0, reason="for root")
def test_root_must_name_a_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENURE_KINDS_SHELL", json.dumps({"allow": [PYTHON]}))
    with pytest.raises(ConfigError, match=r"kinds\.shell\.user must be set for a worker"):
        shell.prepare()


def test_missing_bubblewrap_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    configure(monkeypatch, sandbox="bwrap")
    monkeypatch.setattr(configuration, "_PATH", "/nowhere")
    with pytest.raises(ConfigError, match="bubblewrap is not installed"):
        shell.prepare()


def test_bubblewrap_that_does_not_work_is_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    fake.chmod(0o755)
    configure(monkeypatch, sandbox="bwrap")
    monkeypatch.setattr(configuration, "_PATH", str(tmp_path))
    with pytest.raises(ConfigError) as error:
        shell.prepare()
    assert "No permissions to create new namespace; bubblewrap needs unprivileged" in str(
        error.value
    )


def test_sandbox_works_here(monkeypatch: pytest.MonkeyPatch) -> None:
    configure(monkeypatch, sandbox="bwrap", user="nobody" if USER == "root" else USER)
    shell.prepare()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"argv": []}, "argv must be a list of strings, got []"),
        ({"argv": "pg_dump shop"}, "argv must be a list of strings, got 'pg_dump shop'"),
        ({"argv": ["a", "b\0"]}, "argv[1] must be a string without NUL"),
        ({"argv": ["a", 1]}, "argv[1] must be a string without NUL, got 1"),
        ({"argv": ["a", "x" * 131_072]}, "argv[1] must be at most 131,071 bytes, got 131,072"),
        ({"argv": [""]}, "argv[0] must be a name or an absolute path, got ''"),
        ({"argv": ["bin/x"]}, "argv[0] must be a name or an absolute path, got 'bin/x'"),
        ({"argv": ["./x"]}, "argv[0] must be a name or an absolute path, got './x'"),
        ({"argv": ["a"], "cwd": "x"}, "cwd must be an absolute path, got 'x'"),
        ({"argv": ["a"], "stdin": 1}, "stdin must be text, got int"),
        ({"argv": ["a"], "env": []}, "env must be a dict of names and values, got list"),
        ({"argv": ["a"], "env": {"A=B": ""}}, "env must have names of letters, digits"),
        ({"argv": ["a"], "env": {"LD_PRELOAD": ""}}, "env must not set LD_PRELOAD"),
        ({"argv": ["a"], "env": {"TENURE_FENCE": ""}}, "env must not set TENURE_FENCE"),
        ({"argv": ["a"], "env": {"A": 1}}, "env['A'] must be text without NUL, got int"),
        ({"argv": ["a"], "env": {"A": {"file": "x"}}}, "must be text or the name of a secret"),
        ({"argv": ["a"], "env": {"PGPASSWORD": "x"}}, "must not contain a secret's value"),
        ({"argv": ["a"], "shell": True}, "shell must be one of argv, cwd, stdin and env"),
    ],
)
def test_invalid_argument_is_refused(arguments: dict[str, Any], expected: str) -> None:
    with pytest.raises(InvalidValue) as error:
        shell.check(arguments)
    assert expected in str(error.value)
    assert "hunter2" not in str(error.value)


def test_call_has_only_the_arguments_that_were_given() -> None:
    app = Tenure("postgresql://nowhere/x")
    call = app.shell(("pg_dump", "shop"), env={"A": {"secret": "b"}}, timeout=7)
    assert call.arguments == {"argv": ["pg_dump", "shop"], "env": {"A": {"secret": "b"}}}
    job = call.using(priority=7).bind().job
    assert (job.task, job.queue, job.priority) == ("tenure.shell", "shell", 7)
    with pytest.raises(InvalidValue, match="argv must be a list"):
        app.shell("pg_dump shop")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"::progress 30/100", (30, 100, None)),
        (b"::progress 30/100 copying files \r", (30, 100, "copying files")),
        (b"::progress 30", (30, None, None)),
        (b"::progress 30 of them", (30, None, "of them")),
        (b"::progress -1/3", None),
        (b"::progress x/3", None),
        (b"::progress 1/", None),
        (b"::progress " + b"1" * 40, None),
    ],
)
def test_progress_line_is_read(
    line: bytes, expected: tuple[int, int | None, str | None] | None
) -> None:
    assert guard.parse_progress(line) == expected


def test_progress_line_is_found_across_chunks() -> None:
    lines = guard.ProgressLines()
    assert lines.add(b"x::progress 1/2\n::prog") is None
    assert lines.add(b"ress 1/2\n::progress 2/2 done") == (1, 2, None)
    assert lines.add(b"\n") == (2, 2, "done")
    assert lines.add(b"z" * 100_000) is None
    assert lines.add(b"::progress 3/3\n::progress 4/4\n") == (4, 4, None)


def test_tail_keeps_the_last_bytes() -> None:
    tail = guard.Tail(10)
    for n in range(1000):
        tail.add(str(n % 10).encode() * 3)
    tail.add(b"")
    assert (tail.text(), tail.total) == ("6777888999", 3000)
