"""A worker as the first process of a container: it reaps orphans."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.binaries import ROOT
from support.processes import children
from support.workers import soon
from tests.crash import guarded

if TYPE_CHECKING:
    from support.workers import Bed

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("unshare") is None,
    reason="only root may make a namespace of processes",
)


def zombies(parent: int) -> int:
    """How many of a process' children have ended and are not reaped."""
    found = 0
    for child in children(parent):
        stat = Path(f"/proc/{child}/stat")
        found += stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z"
    return found


def test_programs_that_handlers_leave_behind_are_reaped(bed: Bed, tmp_path: Path) -> None:
    """As zombies they would fill the container's limit of processes."""
    addresses = {"TENURE_DATABASE_URL": bed.url, "TENURE_RUN_DIR": str(tmp_path / "run")}
    log = tmp_path / "worker-first.log"
    with log.open("wb") as out:
        outer = subprocess.Popen(
            [
                *("unshare", "-pf", "--mount-proc", "--kill-child"),
                *(sys.executable, "-m", "tenure", "worker", guarded.TARGET, "--grace=3"),
            ],
            cwd=ROOT,
            env=os.environ | addresses,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
        )
    try:
        [job_id] = bed.enqueue([guarded.leave_programs.bind(50)])
        soon(lambda: not bed.job(job_id).state.is_live, 60, "it did not run")
        assert bed.job(job_id).state == "completed"
        [first] = children(outer.pid)
        soon(lambda: len(list(children(first))) <= 1, 20, f"{zombies(first)} are not reaped")
        # Its own children are asyncio's to wait for: the next one comes when this one ends.
        [child] = children(first)
        os.kill(child, signal.SIGKILL)
        soon(lambda: "crashed (SIGKILL)" in log.read_text(), 10, "its end was missed")
        [again] = bed.enqueue([guarded.leave_programs.bind(1)])
        soon(lambda: not bed.job(again).state.is_live, 30, "no child took its place")
        os.kill(first, signal.SIGTERM)
        assert outer.wait(20) == 0
    finally:
        outer.kill()
        outer.wait()
