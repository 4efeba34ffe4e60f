"""A child that stands still is killed by its parent, whatever its board says."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING

import pytest

from support.workers import Worker, soon
from tests.crash import guarded, hanging
from tests.crash.conftest import full_only

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.workers import Bed
    from tests.crash.conftest import Tell

FROZEN = "service thread stopped responding"


@pytest.fixture
def worker(bed: Bed, tmp_path: Path) -> Iterator[Worker]:
    """A worker with leases of 9 s."""
    with Worker(guarded.TARGET, bed.url, tmp_path, None) as worker:
        yield worker


@pytest.mark.parametrize("task", ["grip", "freeze"])
def test_a_child_whose_service_thread_stands_still_is_killed_within_a_third_of_its_lease(
    bed: Bed, worker: Worker, tell: Tell, task: str
) -> None:
    """By a handler in C that keeps the GIL, or by a signal that stops the process. Shows R4."""
    path = bed.path("still")
    calls = {"grip": guarded.grip.bind(path, 60.0), "freeze": guarded.freeze.bind(path)}
    bed.enqueue([calls[task]])
    soon(lambda: bool(bed.effects("still").at), 30, "it did not begin")
    began = bed.effects("still").at[0]
    soon(lambda: FROZEN in worker.log(), 10, "the child was not killed")
    took = time.time() - began
    tell(f"killed {took:.1f} s after it stood still, of {guarded.LEASE / 3:g}")
    assert took < guarded.LEASE / 3 + 2
    soon(lambda: bool(worker.children), 10, "no child came in its place")


def test_a_child_with_a_busy_neighbour_is_not_killed(bed: Bed, worker: Worker) -> None:
    """The GIL kept for less than a third of the lease does not end a child."""
    path = bed.path("well")
    jobs = bed.enqueue([guarded.grip.bind(path, 1.5), guarded.nap.bind(path, 4.0)])
    for job_id in jobs:
        soon(lambda job_id=job_id: not bed.job(job_id).state.is_live, 30, "not all ended")  # type: ignore[misc]
    assert [bed.job(job_id).state for job_id in jobs] == ["completed", "completed"]
    assert "killed" not in worker.log()


@full_only
def test_a_child_that_stands_still_with_nothing_to_do_is_killed_too(
    bed: Bed, worker: Worker, tell: Tell
) -> None:
    """It would never claim again, unnoticed."""
    bed.enqueue([guarded.nap.bind(bed.path("first"), 0.1)])
    soon(lambda: bed.ended() == 1, 30, "the worker did not begin")
    [child] = worker.children
    os.kill(child, signal.SIGSTOP)
    stopped_at = time.monotonic()
    soon(lambda: FROZEN in worker.log(), 40, "the child was not killed")
    tell(f"killed {time.monotonic() - stopped_at:.1f} s after it stood still, of 30")
    bed.enqueue([guarded.nap.bind(bed.path("second"), 0.1)])
    soon(lambda: bed.ended() == 2, 30, "nothing ran after that")


def test_a_child_that_does_not_finish_loading_is_killed_and_another_comes(
    bed: Bed, tmp_path: Path, tell: Tell
) -> None:
    """An import that waits for something that is not there."""
    hang = tmp_path / "hang"
    hang.touch()
    environment = {"TENURE_TEST_HANG": str(hang)}
    with Worker(hanging.TARGET, bed.url, tmp_path, environment, **{"load-timeout": 2}) as worker:
        soon(lambda: "did not load the app in time" in worker.log(), 20, "it was not killed")
        hang.unlink()
        [job_id] = bed.enqueue([hanging.brief.bind()])
        soon(lambda: not bed.job(job_id).state.is_live, 30, "no child took its place")
        assert bed.job(job_id).state == "completed"
