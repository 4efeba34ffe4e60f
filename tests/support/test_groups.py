"""The kernel's groups: who is frozen stands still, who takes too much memory is killed, who forks
too often is refused, who works too much waits, and no group stays behind."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from support import freezer
from support.freezer import Freezer
from support.limits import MemoryLimit, ProcessLimit, ProcessorLimit
from support.processes import wait_for

if TYPE_CHECKING:
    from pathlib import Path

_TICK = """
import subprocess, sys, time
if len(sys.argv) == 2:
    subprocess.Popen([sys.executable, "-c", sys.argv[1], "", "below"])
while True:
    print(len(sys.argv), flush=True)
    time.sleep(0.01)
"""
_BREED = """
import os, sys, time
born = 0
try:
    while os.fork():
        born += 1
except BlockingIOError:
    sys.exit(born)
else:
    time.sleep(60)
"""
_SPIN = """
import threading
def spin():
    while True: pass
threading.Thread(target=spin).start()
"""
_HOARD = "hoard = []\nwhile True: hoard.append(b'x' * 2**20)"


@pytest.mark.skipif(not freezer.available(), reason="no freezer here")
def test_process_tree_freezes_and_continues(tmp_path: Path) -> None:
    path = tmp_path / "ticks"
    with path.open("wb") as file:
        leader = subprocess.Popen([sys.executable, "-c", _TICK, _TICK], stdout=file)
    assert wait_for(lambda: {b"2", b"3"} <= set(path.read_bytes().split()), 10)
    group = Freezer()
    family = group.freeze(leader.pid)
    try:
        assert len(family) == 2
        size = path.stat().st_size
        assert not wait_for(lambda: path.stat().st_size > size, 0.3)
    finally:
        group.thaw()
    assert wait_for(lambda: path.stat().st_size > size, 10)
    for pid in family:
        subprocess.run(["/bin/kill", "-KILL", str(pid)], check=True)
    leader.wait()
    assert not list(freezer.ROOT.glob(group.name))


@pytest.mark.skipif(not MemoryLimit.available(), reason="no groups with a limit of memory here")
def test_who_takes_too_much_memory_is_killed() -> None:
    limit = MemoryLimit(64 * 2**20)
    try:
        done = subprocess.run(
            [*limit.command, sys.executable, "-c", _HOARD], check=False, timeout=60
        )
        assert done.returncode == -9
        assert limit.kills == 1
    finally:
        limit.remove()
    assert not list(MemoryLimit.root.glob(limit.name))


@pytest.mark.skipif(not ProcessLimit.available(), reason="no groups with a limit of processes here")
def test_who_forks_too_often_is_refused() -> None:
    limit = ProcessLimit(8)
    try:
        done = subprocess.run(
            [*limit.command, sys.executable, "-c", _BREED], check=False, timeout=60
        )
        assert done.returncode == 7 == len(limit.members)
    finally:
        limit.remove()
    assert not list(ProcessLimit.root.glob(limit.name))


@pytest.mark.skipif(not ProcessorLimit.available(), reason="no groups with a limit of time here")
def test_who_works_too_much_waits_with_all_threads_and_is_let_go() -> None:
    with (
        subprocess.Popen([sys.executable, "-c", _SPIN]) as process,
        ProcessorLimit(2_000) as limit,
    ):
        try:
            limit.take([process.pid])
            assert limit.members == [process.pid]
            assert wait_for(lambda: limit.waits > 2, 10)
            limit.remove()
            assert process.poll() is None
        finally:
            process.kill()
    assert not list(ProcessorLimit.root.glob(limit.name))
