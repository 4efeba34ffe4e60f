"""Handlers that harm the process they run in: their neighbors complete, and the worker runs on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from support.workers import Worker, soon
from tests.crash import bad_handlers

if TYPE_CHECKING:
    from pathlib import Path

    from support.workers import Bed
    from tenure.task import Registered

pytestmark = pytest.mark.timeout(120)
LIVE = "SELECT count(*) FROM tenure.job"
# What each does, and how it ends: its state, its reason, and the outcome of its first attempt.
CASES: dict[Registered[..., Any], tuple[str, str, str]] = {
    bad_handlers.change_surroundings: ("completed", "worker_done", "completed"),
    bad_handlers.huge_error: ("failed", "attempts", "failed"),
    bad_handlers.shut_executor: ("completed", "worker_done", "completed"),
    bad_handlers.cancel_all: ("failed", "attempts", "lost"),
    bad_handlers.exit_in_callback: ("failed", "attempts", "lost"),
    bad_handlers.close_descriptors: ("failed", "poison", "lost"),
}


def test_each_bad_handler_harms_itself_alone(bed: Bed, tmp_path: Path) -> None:
    """One worker for all of them, one after another. Neighbors that had one attempt complete."""
    with Worker(bad_handlers.TARGET, bed.url, tmp_path, None, concurrency=8) as worker:
        for task, (state, reason, first) in CASES.items():
            neighbors = bed.enqueue([bad_handlers.nap.bind(), bad_handlers.doze.bind()])
            [bad] = bed.enqueue([task.bind()])
            soon(lambda: bed.count(LIVE) == 0, 40, f"{task.name}: not all ended")
            later = bed.enqueue([bad_handlers.nap.bind(), bad_handlers.work_apart.bind()])
            soon(lambda: bed.count(LIVE) == 0, 40, f"{task.name}: the next jobs did not end")
            row = bed.job(bad)
            assert (row.state, row.done_reason) == (state, reason), task.name
            assert bed.attempts(bad)[0].outcome == first, task.name
            for job_id in (*neighbors, *later):
                innocent = bed.job(job_id)
                assert (innocent.state, innocent.attempt) == ("completed", 1), task.name
        assert worker.alive


def test_a_stopped_loop_waits_for_no_handler(bed: Bed, tmp_path: Path) -> None:
    """A neighbor that is deaf to cancels would keep the child from ending, with all its leases."""
    with Worker(bad_handlers.TARGET, bed.url, tmp_path, None, concurrency=8) as worker:
        [deaf] = bed.enqueue([bad_handlers.deaf.bind(20.0)])
        soon(lambda: bed.job(deaf).state == "running", 20, "it did not begin")
        [bad] = bed.enqueue([bad_handlers.stop_loop.bind()])
        soon(lambda: bool(bed.attempts(bad)), 8, "the child did not end")
        output = worker.log()

    assert bed.attempts(bad)[0].outcome == "lost"
    assert "event loop ended unexpectedly" in output
    assert "dead letters" not in output
