"""A handler in a thread that is stopped leaves no lock of a library locked behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.workers import Worker, soon
from tests.crash import spinners
from tests.crash.conftest import FULL

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from support.workers import Bed
    from tenure.task import BoundCall
    from tests.crash.conftest import Tell

TIMEOUTS = 200 if FULL else 24
KINDS: dict[str, Callable[[], BoundCall[None]]] = {
    "lines of 100 KB": lambda: spinners.log_lines.bind(100_000, 0.0),
    "a line per row": lambda: spinners.log_lines.bind(200, 0.002),
    "lines without a pause": lambda: spinners.log_lines.bind(200, 0.0),
    "a handler of its own": lambda: spinners.log_by_own_handler.bind(0.002),
    "a condition and a queue": spinners.use_a_condition.bind,
    "an event": spinners.wait_for_an_event.bind,
    "progress": spinners.report.bind,
    "SQL": spinners.query.bind,
}


@pytest.mark.parametrize("kind", KINDS)
def test_timeouts_of_handlers_inside_libraries_freeze_nothing(
    bed: Bed, tmp_path: Path, tell: Tell, kind: str
) -> None:
    """All are timed out, their neighbours complete, and no child stands still. Shows R19."""
    with Worker(spinners.TARGET, bed.url, tmp_path, None, concurrency=6) as worker:
        innocents = bed.enqueue(spinners.innocent.bind(40) for _ in range(2))
        jobs = bed.enqueue(KINDS[kind]() for _ in range(TIMEOUTS))
        ended = "SELECT count(*) FROM tenure.attempt"
        soon(
            lambda: bed.count("SELECT count(*) FROM tenure.job") == 0,
            TIMEOUTS * 2 + 20,
            f"only {bed.count(ended)} ended",
        )
        outcomes = [bed.attempts(job_id)[-1].outcome for job_id in jobs]
        assert set(outcomes) == {"timed_out"}
        assert [bed.job(job_id).state for job_id in innocents] == ["completed"] * 2
        output = worker.log()
        assert "stopped responding" not in output
        replaced = output.count("replacing the child")
        tell(f"{kind}: {len(outcomes)} timed out, {replaced} children replaced")
        # Six threads that spin inside such locks are rarely seen outside of them.
        assert replaced == 0 or kind == "a condition and a queue"
