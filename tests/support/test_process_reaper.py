"""The guard over a program: what moved away from it is ended with it."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from support import process_reaper
from support.processes import alive, wait_for

# A shell that leaves a process behind in a session of its own, says its id and ends.
_LEAVES_ONE = "setsid sleep 60 >/dev/null & echo $!"


def test_what_a_program_left_behind_ends_with_its_guard() -> None:
    guard = subprocess.Popen(
        [sys.executable, "-c", Path(process_reaper.__file__).read_text(), "sh", "-c", _LEAVES_ONE],
        stdout=subprocess.PIPE,
    )
    with guard:
        assert guard.stdout is not None
        left = int(guard.stdout.readline())
        assert alive(left)

        guard.send_signal(signal.SIGTERM)

        assert guard.wait(10) == 0
        assert wait_for(lambda: not alive(left), 5)


def test_guard_ends_when_its_processes_are_gone() -> None:
    command = [sys.executable, "-c", Path(process_reaper.__file__).read_text(), "true"]
    assert subprocess.run(command, timeout=10, check=False).returncode == 0
