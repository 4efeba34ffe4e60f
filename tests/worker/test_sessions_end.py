"""The end of a session: nothing of it is left, however fast it forks."""

from __future__ import annotations

import subprocess
import sys

import pytest

from support.limits import ProcessLimit
from support.processes import wait_for
from tenure.worker.processes import kill_session

# In a group of its own, as a handler's process is: forks wherever there is room for one more.
_BOMB = """
import os, time
os.setpgid(0, 0)
while True:
    try:
        os.fork()
    except BlockingIOError:
        time.sleep(0.001)
"""
_LEADER = f"""
import subprocess, sys, time
subprocess.Popen([sys.executable, "-c", {_BOMB!r}])
time.sleep(60)
"""
_MANY = 60


@pytest.mark.skipif(not ProcessLimit.available(), reason="no groups with a limit of processes here")
def test_a_fork_bomb_in_a_group_of_its_own_is_ended_with_the_session() -> None:
    """One by one, those that are left would take the room of those that are gone."""
    limit = ProcessLimit(_MANY)
    leader = subprocess.Popen(
        [*limit.command, sys.executable, "-c", _LEADER], start_new_session=True
    )
    try:
        assert wait_for(lambda: len(limit.members) >= _MANY - 2, 20)
        kill_session(leader.pid)
        leader.wait(10)
        assert wait_for(lambda: not limit.members, 10)
    finally:
        limit.remove()
