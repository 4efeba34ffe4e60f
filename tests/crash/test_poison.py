"""Jobs that kill their worker: found out after three losses, and their neighbours are not.

At every commit `just prove innocents` judges the same for handlers that exit, segfault, abort or
are killed; the short form has only what that does not: a handler that exits with the code 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.workers import soon
from tests.crash import handlers
from tests.crash.conftest import full_only

if TYPE_CHECKING:
    from support.workers import Bed
    from tenure._model.ids import JobId
    from tests.crash.conftest import Hire, Tell

NEIGHBOURS = 200
WAYS = ("exit", "kill", "segfault")


def _found_out(bed: Bed, pills: list[JobId]) -> None:
    """Wait until all has ended, and see that of these each failed as poison after three deaths of
    its own process, after at most two of a process that it shared: with others at the same time,
    and with one that had ended in it less than a second before."""
    live = "SELECT count(*) FROM tenure.job"
    soon(lambda: bed.count(live) == 0, 60, "not all ended")
    for job_id in pills:
        row = bed.job(job_id)
        assert (row.state, row.done_reason, row.losses) == ("failed", "poison", 3)
        # What was claimed with another pill and had not begun is given back, uncharged.
        endings = [ended.outcome for ended in bed.attempts(job_id)]
        assert [ending for ending in endings if ending != "released"] == ["lost"] * row.deaths
        assert row.deaths - row.losses == row.worker_losses <= 2


def _charged(bed: Bed) -> str:
    """Which innocent jobs paid: how many were charged, by losses."""
    rows = bed.fetch(
        "SELECT losses, attempt, count(*) FROM tenure.job_archive GROUP BY 1, 2 ORDER BY 1, 2"
    )
    return ", ".join(
        f"{r['count']} with {r['losses']} losses {r['attempt']} attempts" for r in rows
    )


@pytest.mark.parametrize(
    "way", ["exit well", *(pytest.param(way, marks=full_only) for way in WAYS)]
)
def test_a_pill_among_many_is_found_out_alone(bed: Bed, hire: Hire, tell: Tell, way: str) -> None:
    """Shows R7 and R13."""
    neighbours = [
        handlers.nap.bind(bed.path("naps"), 0.2),
        handlers.doze.bind(bed.path("naps"), 0.2),
    ]
    half = NEIGHBOURS // 2
    jobs = bed.enqueue(
        [neighbours[n % 2] for n in range(half)]
        + [handlers.pill.bind(bed.path("pill"), way)]
        + [neighbours[n % 2] for n in range(half)]
    )
    worker = hire(concurrency=10)
    _found_out(bed, [jobs[half]])

    assert bed.ended() == NEIGHBOURS
    assert len(bed.effects("pill").at) == bed.job(jobs[half]).deaths
    assert worker.alive
    tell(_charged(bed))


@full_only
def test_three_pills_at_once_take_no_innocent_with_them(bed: Bed, hire: Hire, tell: Tell) -> None:
    """Shows R7 and R13."""
    jobs = bed.enqueue(
        [handlers.pill.bind(bed.path(way), way) for way in WAYS]
        + [handlers.nap.bind(bed.path("naps"), 0.2) for _ in range(NEIGHBOURS)]
    )
    hire(concurrency=10)
    _found_out(bed, jobs[:3])
    assert bed.ended() == NEIGHBOURS
    tell(_charged(bed))


@full_only
def test_three_pills_in_turn_take_no_innocent_with_them(bed: Bed, hire: Hire, tell: Tell) -> None:
    """A neighbour that takes long sees all three die. Shows R7 and R13."""
    path = bed.path("naps")
    slow = bed.enqueue([handlers.nap.bind(path, 3.0) for _ in range(5)])
    hire(concurrency=10)
    running = "SELECT count(*) FROM tenure.job WHERE state = 'running'"
    pills = []
    for way in WAYS:
        soon(lambda: bed.count(running) >= len(slow), 30, "the innocents did not begin")
        pills += bed.enqueue([handlers.pill.bind(bed.path(way), way)])
        soon(lambda way=way: len(bed.effects(way).at) > 0, 30, "the pill did not begin")  # type: ignore[misc]
        bed.enqueue([handlers.brief.bind(path) for _ in range(50)])
    _found_out(bed, pills)
    states = [bed.job(job_id) for job_id in slow]
    tell(_charged(bed))
    assert {(row.state, row.done_reason) for row in states} == {("completed", "worker_done")}
