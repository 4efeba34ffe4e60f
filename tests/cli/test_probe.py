"""`tenure probe` tells a living worker from a dead, a stuck and an absent one, and fast."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from support.machine import slowdown
from tests.timing import median, seconds

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Command

HEAVY = ("typer", "click", "rich", "psycopg", "tenure.app", "tenure.admin", "asyncio", "_model")

# Runs, and began before any beat that a test ascribes to it.
OLD = 1


def beat(command: Command, *, age: float = 0.5, **fields: Any) -> Path:
    """Write the state file of a worker with a heartbeat of this age (default: this process)."""
    command.run_directory.mkdir(exist_ok=True)
    state = {
        "pid": os.getpid(),
        "name": "anna",
        "state": "active",
        "last_heartbeat_at": time.clock_gettime(time.CLOCK_BOOTTIME) - age,
        "children": 2,
        "wanted": 2,
    } | fields
    file = command.run_directory / f"{state['pid']}.json"
    file.write_text(json.dumps(state))
    return file


@pytest.fixture
def gone() -> int:
    """The pid of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_a_worker_that_beats_is_healthy_in_one_line(command: Command) -> None:
    beat(command)
    ended = command("probe")
    assert (ended.code, ended.err) == (0, "")
    [line] = ended.out.splitlines()
    assert line.startswith("anna: active, 2 of 2 children working, last heartbeat ")


def test_a_draining_worker_is_healthy(command: Command) -> None:
    """Shows R31."""
    beat(command, state="draining")
    assert command("probe").code == 0


def test_without_a_worker_the_probe_fails_in_three_lines(command: Command) -> None:
    ended = command("probe")
    assert (ended.code, ended.out) == (1, "")
    assert len(ended.err.splitlines()) == 3
    what, why, todo = ended.error
    assert what == "no worker runs here"
    assert str(command.run_directory) in why
    assert "tenure worker module:app" in todo


def test_a_worker_that_has_not_beaten_for_long_is_stuck(command: Command) -> None:
    beat(command, pid=OLD, age=11)
    ended = command("probe")
    assert ended.code == 1
    assert ended.error[0] == "worker anna is stuck"
    assert f"pid {OLD} is running, but its last heartbeat was 11 s ago" in ended.error[1]


def test_a_worker_none_of_whose_children_has_worked_for_a_minute_is_unhealthy(
    command: Command,
) -> None:
    beat(command, working=0, none_working_for=59.0, trouble="child 3 ended")
    assert command("probe").code == 0
    beat(command, working=0, none_working_for=61.0, trouble="child 3 ended (SIGKILL)")
    ended = command("probe")
    assert ended.code == 1
    assert ended.error[0] == "worker anna has no working child"
    assert ended.error[1] == "none has worked for 61 s: child 3 ended (SIGKILL)"


def test_a_worker_whose_process_is_gone_is_dead_however_fresh_its_beat(
    command: Command, gone: int
) -> None:
    beat(command, pid=gone)
    ended = command("probe")
    assert ended.code == 1
    assert f"anna (pid {gone}) is dead" in ended.error[1]


def test_a_process_that_got_a_dead_workers_number_is_not_taken_for_it(command: Command) -> None:
    """This process began after that beat."""
    beat(command, age=time.clock_gettime(time.CLOCK_BOOTTIME))
    assert "is dead" in command("probe").error[1]


def test_a_beat_from_before_the_machine_was_restarted_counts_for_nothing(
    command: Command,
) -> None:
    beat(command, age=-1000)
    assert "is dead" in command("probe").error[1]


def test_what_a_dead_worker_left_does_not_hide_a_living_one(command: Command, gone: int) -> None:
    beat(command, pid=gone, name="bert")
    beat(command)
    assert command("probe").code == 0


def test_a_stuck_worker_is_seen_beside_a_healthy_one(command: Command) -> None:
    beat(command)
    beat(command, pid=OLD, name="bert", age=20)
    ended = command("probe")
    assert ended.code == 1
    assert ended.error[0] == "worker bert is stuck"


def test_a_name_asks_for_that_worker_alone(command: Command) -> None:
    beat(command)
    assert command("probe", "--name", "anna").code == 0
    assert command("probe", "--name=anna").code == 0
    other = command("probe", "--name", "bert")
    assert other.code == 1
    assert "a worker named bert" in other.error[1]


def test_json_output_is_for_programs(command: Command, gone: int) -> None:
    beat(command)
    beat(command, pid=gone, name="bert")
    state = command("probe", "--json").json
    assert state["healthy"] is True
    assert state["directory"] == str(command.run_directory)
    assert {worker["name"]: worker["alive"] for worker in state["workers"]} == {
        "anna": True,
        "bert": False,
    }
    assert command("probe", "--json", "--name", "bert").json["healthy"] is False


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": "x"}', '{"pid": 1}'])
def test_unreadable_file_gives_an_error_without_a_traceback(command: Command, text: str) -> None:
    beat(command).write_text(text)
    ended = command("probe")
    assert ended.code == 1
    assert "cannot be read" in ended.error[1]


def test_a_name_cannot_steer_the_terminal(command: Command) -> None:
    beat(command, name="anna\x1b[2J\nerror: fire")
    [line] = command("probe").out.splitlines()
    assert "\x1b" not in line


def test_the_run_directory_is_the_users_own_or_one_in_tmp(command: Command) -> None:
    own = command("probe", TENURE_RUN_DIR="", XDG_RUNTIME_DIR="/run/user/4711")
    assert "in /run/user/4711/tenure" in own.error[1]
    other = command("probe", "--name", "no-such-worker", TENURE_RUN_DIR="")
    assert f"in /tmp/tenure-{os.getuid()}" in other.error[1]


def test_mistakes_and_help_go_to_the_full_command_line(command: Command) -> None:
    assert "--name" in command("probe", "--help").out
    for wrong in (["--nome", "x"], ["--name"], ["x"]):
        assert command("probe", *wrong).code == 2


def test_the_probe_loads_nothing_of_the_house(command: Command) -> None:
    beat(command)
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "tenure", "probe"],
        env=command.environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "tenure.cli.probe" in loaded
    assert not [name for name in loaded if name.startswith("tenure") and "_model" in name]
    assert not loaded & set(HEAVY)


@pytest.mark.timing
def test_the_probe_answers_within_a_tenth_of_a_second(command: Command) -> None:
    """Of processor time: the probe waits for nothing."""
    beat(command)

    def used_by_children() -> float:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    def probe() -> None:
        assert command("probe").code == 0

    probe()  # It compiles the modules.
    assert median(lambda: seconds(probe, used_by_children)) < 0.1 * slowdown()
