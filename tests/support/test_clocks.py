"""A false clock is false where it should be, and true elsewhere."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psycopg
import pytest

from support import clocks
from support.clocks import Clock
from support.cluster import Cluster
from support.processes import wait_for
from tests.timing import median

# True time is in a file of the kernel, which nothing intercepts.
PROBE = """
import asyncio, json, select, sys, threading, time

def true():
    with open("/proc/uptime") as file:
        return float(file.read().split()[0])

def took(wait):
    began = true(); wait(); return true() - began

def plain_sleep():
    try:
        time.sleep(0.5)
    except OSError as error:
        return error.errno
    return 0

print(json.dumps({
    "wall": time.time(),
    "monotonic": time.monotonic(),
    "boottime": time.clock_gettime(time.CLOCK_BOOTTIME) - true(),
    "waits": {
        "select": took(lambda: select.select([], [], [], 0.5)),
        "poll": took(lambda: select.poll().poll(500)),
        "epoll": took(lambda: select.epoll().poll(0.5)),
        "thread": took(lambda: threading.Event().wait(0.5)),
        "asyncio": took(lambda: asyncio.run(asyncio.sleep(0.5))),
    },
    "plain_sleep": plain_sleep(),
}), flush=True)
"""

TICKS = """
import sys, threading, time
for _ in range(100):
    print(time.time(), time.monotonic(), flush=True)
    threading.Event().wait(0.1)
"""


def child(clock: Clock, program: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program],
        env=os.environ | clock.environment,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("offset", [3600, -3600])
def test_a_child_sees_another_wall_time_and_true_waits(offset: int) -> None:
    with Clock(offset) as clock:
        before, wall = time.monotonic(), time.time()
        with child(clock, PROBE) as probe:
            output, _ = probe.communicate(timeout=60)
        after = time.monotonic()
    seen: dict[str, Any] = json.loads(output)
    assert offset <= seen["wall"] - wall <= offset + after - before + 1
    assert before < seen["monotonic"] < after
    assert abs(seen["boottime"]) < 1
    assert all(0.45 <= waited < 5 for waited in seen["waits"].values()), seen["waits"]
    # Known: the day it becomes 0, the module's docstring may say less.
    assert seen["plain_sleep"] == 22


@pytest.mark.timing
def test_a_clock_that_drifts_leaves_monotonic_time_alone() -> None:
    def off_by() -> float:
        with Clock() as clock, child(clock, TICKS) as probe:
            clock.drift(10)
            assert probe.stdout is not None
            lines = [probe.stdout.readline().split() for _ in range(50)]
            probe.kill()
        walls, monotonics = ([float(line[column]) for line in lines] for column in (0, 1))
        true = monotonics[-1] - monotonics[0]
        assert true >= 4.5
        return abs(walls[-1] - walls[0] - 10 * true)

    # The child sees a step up to a second late, and the step itself can be late.
    assert median(off_by) <= 25


def test_a_servers_clock_is_stepped_while_it_runs(cluster: Cluster) -> None:
    with (
        Clock() as clock,
        Cluster(cluster.major, environment=clock.environment) as own,
        psycopg.connect(own.url(), autocommit=True) as connection,
    ):

        def ahead() -> float:
            started = "SELECT extract(epoch FROM clock_timestamp())"
            [(now,)] = connection.execute(started).fetchall()
            return float(now) - time.time()

        def arrived(offset: float) -> bool:
            return wait_for(lambda: abs(ahead() - offset) < 1, 10)

        assert arrived(0)
        for offset in (600, -600, 0):
            clock.set(offset)
            assert arrived(offset)


def test_nothing_is_left_of_a_child_that_was_killed() -> None:
    with Clock() as clock:
        with child(clock, TICKS) as probe:
            assert probe.stdout is not None
            probe.stdout.readline()
            probe.kill()
        directory = Path(clock.environment["FAKETIME_TIMESTAMP_FILE"]).parent
    assert not directory.exists()
    assert not list(clocks._SHARED.glob(f"*faketime*_{probe.pid}"))


def test_a_missing_library_says_what_to_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "glob", lambda *_: iter(()))
    with pytest.raises(clocks.FaketimeNotFoundError, match="apt-get install faketime"):
        Clock()
