"""Handlers that leave a daemon behind, in its own session: it may live, and delays no job."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from support.processes import alive, send
from support.workers import soon
from tests.crash import handlers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.workers import Bed
    from tests.crash.conftest import Hire

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def path(bed: Bed) -> Iterator[str]:
    """Where the daemon leaves its number; it is ended with the test."""
    path = bed.path("daemon")
    yield path
    for line in Path(path).read_text().splitlines():
        send(int(line.split()[1]), signal.SIGKILL)


def _daemon(path: str) -> int:
    [line] = Path(path).read_text().splitlines()
    return int(line.split()[1])


@pytest.mark.parametrize("form", ["in a thread", "in a process"])
def test_daemon_with_the_channel_open_blocks_nothing(
    bed: Bed, hire: Hire, path: str, form: str
) -> None:
    """The loss is settled, the next job runs, and a signal ends the worker. Shows R7."""
    task = handlers.daemon_in_thread if form == "in a thread" else handlers.daemon_in_process
    worker = hire(concurrency=1, grace=5.0)
    [job_id] = bed.enqueue([task.bind(path)])
    soon(lambda: bed.ended("failed") == 1 or len(bed.attempts(job_id)) == 1, 20, "not settled")
    bed.enqueue([handlers.brief.bind(bed.path("next"))])
    soon(lambda: bed.ended() == 1, 20, "the next one did not run")
    assert alive(_daemon(path))
    worker.send(signal.SIGTERM)

    assert worker.wait(10) == 0


@pytest.mark.parametrize("task", [handlers.passed_on, handlers.passed_on_by_a_process])
def test_a_program_that_a_handler_starts_gets_no_channel(bed: Bed, hire: Hire, task: Any) -> None:
    [job_id] = bed.enqueue([task.bind()])
    hire(concurrency=1)
    soon(lambda: bed.ended() == 1, 20, "it did not run")

    assert bed.job(job_id).result == []
