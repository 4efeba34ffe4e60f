"""Handlers that take too long: really stopped, and told so only when they have ended."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from support.workers import soon
from tests.crash import handlers

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from support.workers import Bed
    from tenure.task import BoundCall
    from tests.crash.conftest import Hire, Tell

GRACE = 3.0
TIMEOUT = 1.0
KINDS: dict[str, Callable[[str], BoundCall[None]]] = {
    "on the loop": handlers.late_on_loop.bind,
    "in a thread": handlers.late_in_thread.bind,
    "in a process": handlers.late_in_process.bind,
    "in C": handlers.late_in_c.bind,
}


def _warm(bed: Bed) -> None:
    """Have the worker start a handler's process, which it keeps: a timeout counts its start."""
    bed.enqueue([handlers.in_process.bind(bed.path("warm"), 0.1)])
    soon(lambda: bed.ended() == 1, 30, "the worker did not begin")


@pytest.mark.parametrize(
    "kinds", [["on the loop", "in a thread", "in a process"], ["in C"]], ids=["alone", "with all"]
)
def test_it_is_stopped_and_then_recorded(
    bed: Bed, hire: Hire, tell: Tell, kinds: Sequence[str]
) -> None:
    """Alone, and where that cannot be, with its child, which is replaced for its sake: its
    neighbours have the grace to end in. Shows R19."""
    worker = hire(grace=GRACE)
    _warm(bed)
    jobs = bed.enqueue(KINDS[kind](bed.path(kind)) for kind in kinds)
    [neighbour] = bed.enqueue([handlers.nap.bind(bed.path("neighbour"), 2 * TIMEOUT)])
    for job_id in [*jobs, neighbour]:
        soon(lambda job_id=job_id: not bed.job(job_id).state.is_live, 30, "not all ended")  # type: ignore[misc]
    time.sleep(0.5)
    for kind, job_id in zip(kinds, jobs, strict=True):
        row = bed.job(job_id)
        assert (row.state, row.done_reason, row.attempt, row.losses) == ("failed", "attempts", 1, 0)
        [attempt] = bed.attempts(job_id)
        assert attempt.outcome == "timed_out"
        ended_at = attempt.ended_at.timestamp()
        assert bed.effects(kind).last < ended_at, "an effect after its end was recorded"
        took = ended_at - attempt.started_at.timestamp()
        assert took < TIMEOUT + 2 + (GRACE if kind == "in C" else 0)
        tell(f"{kind}: ended {took:.2f} s after its claim, of {TIMEOUT:g}")
    assert [ended.outcome for ended in bed.attempts(neighbour)] == ["completed"]
    assert worker.alive


def test_one_that_ended_with_its_child_is_tried_again_when_its_task_says(
    bed: Bed, hire: Hire, tell: Tell
) -> None:
    """The parent, which has loaded no task, ends it: the child has told how long the job waits.
    Shows R14."""
    hire(grace=GRACE)
    [job_id] = bed.enqueue([handlers.late_at_first.bind(bed.path("again"))])
    soon(lambda: not bed.job(job_id).state.is_live, 30, "it was not tried again")
    first, second = bed.attempts(job_id)
    assert (first.outcome, second.outcome) == ("timed_out", "completed")
    waited = second.started_at.timestamp() - first.ended_at.timestamp()
    assert waited < 10, "by default it would wait for 30 s"
    tell(f"again {waited:.2f} s after its end was recorded")


def test_a_program_that_a_process_waits_for_is_stopped_with_it(
    bed: Bed, hire: Hire, tell: Tell
) -> None:
    """Else it would run next to the next attempt. Shows R19."""
    hire(grace=GRACE)
    _warm(bed)
    [job_id] = bed.enqueue([handlers.late_with_a_program.bind(bed.path("program"))])
    soon(lambda: not bed.job(job_id).state.is_live, 30, "it was not stopped")
    [attempt] = bed.attempts(job_id)
    assert attempt.outcome == "timed_out"
    time.sleep(1)
    after = bed.effects("program").last - attempt.ended_at.timestamp()
    tell(f"last effect {after:+.2f} s after its end was recorded")
    assert after < 0


def test_ignored_cancel_does_not_outlast_the_timeout(bed: Bed, hire: Hire, tell: Tell) -> None:
    """Shows R19."""
    [job_id] = bed.enqueue([handlers.deaf_and_late.bind(bed.path("deaf"))])
    hire(grace=GRACE)
    soon(lambda: bool(bed.effects("deaf").at), 30, "it did not begin")
    began = time.monotonic()
    bed.cancel(job_id)
    soon(lambda: not bed.job(job_id).state.is_live, 20, "it was not stopped")
    assert bed.job(job_id).state == "cancelled"
    [attempt] = bed.attempts(job_id)
    assert bed.effects("deaf").last < attempt.ended_at.timestamp()
    tell(f"ended {time.monotonic() - began:.2f} s after the cancel")
