"""Workers that are stopped under load: nothing is lost, no attempt is charged."""

from __future__ import annotations

import random
import signal
import time
from typing import TYPE_CHECKING

import pytest

from support.proxy import Proxy
from support.workers import soon
from tests.crash import handlers
from tests.crash.conftest import FULL

if TYPE_CHECKING:
    from support.workers import Bed, Worker
    from tenure.task import BoundCall
    from tests.crash.conftest import Hire, Tell

TIMES = 50 if FULL else 5
# Of this and of longer ones, a whole second is kept for the end of the processes themselves.
GRACE = 5.0
# Between the last child's end and the parent's.
SPARE = 1.0
RUNNING = "SELECT count(*) FROM tenure.job WHERE state = 'running'"
_chance = random.Random()  # noqa: S311 - any moment will do

pytestmark = pytest.mark.timeout(3600)


def _mixed(bed: Bed, count: int) -> list[BoundCall[None]]:
    """Jobs of all lengths and kinds: most end at once, some not within the grace."""
    path = bed.path("mixed")
    return [
        _chance.choices(
            [
                handlers.brief.bind(path),
                handlers.nap.bind(path, _chance.uniform(0, 1)),
                handlers.doze.bind(path, _chance.uniform(0, 1)),
                handlers.on_loop.bind(path, GRACE + 1),
                handlers.in_thread.bind(path, GRACE + 1),
            ],
            weights=[50, 20, 20, 5, 5],
        )[0]
        for _ in range(count)
    ]


def _stop(worker: Worker, *, within: float) -> float:
    """Send SIGTERM and wait for the end; how long it took."""
    began = time.monotonic()
    worker.send(signal.SIGTERM)
    assert worker.wait(within) == 0
    return time.monotonic() - began


def _uncharged(bed: Bed) -> None:
    """Everything that was given back has the attempts that it had before."""
    assert set(bed.endings()) <= {"completed", "released"}
    assert bed.count(RUNNING) == 0
    assert bed.count("SELECT count(*) FROM tenure.job WHERE attempt > 0 OR losses > 0") == 0


def test_under_load_no_job_is_lost_or_charged(bed: Bed, hire: Hire, tell: Tell) -> None:
    """Stopped at any moment, a worker ends within its grace; the next one continues. Shows R31."""
    enqueued = 0
    took: list[float] = []
    for turn in range(TIMES):
        # A backlog at first; then about as many as a turn works off.
        enqueued += len(bed.enqueue(_mixed(bed, 60 if turn else 300)))
        worker = hire(concurrency=20, grace=GRACE)
        done = bed.ended()
        soon(lambda done=done: bed.ended() > done, 30, "the worker did not begin")  # type: ignore[misc]
        time.sleep(_chance.uniform(0, 1))
        took.append(_stop(worker, within=GRACE))
        _uncharged(bed)
        assert bed.ended() + bed.count("SELECT count(*) FROM tenure.job") == enqueued
    given_back = bed.endings().get("released", 0)
    assert given_back, "nothing was given back, which shows little"
    hire(concurrency=100)
    soon(lambda: bed.ended() == enqueued, 180, "not all completed in the end")
    tell(f"{TIMES} times, {took and max(took):.2f} s at most, {given_back} given back, {enqueued=}")


def test_what_takes_longer_than_the_grace_is_stopped_and_given_back(
    bed: Bed, hire: Hire, tell: Tell
) -> None:
    """On the loop, in a thread, in a process, and one that ignores every stop. Shows R31."""
    kinds = ("on_loop", "in_thread", "in_process", "deaf")
    jobs = bed.enqueue(getattr(handlers, kind).bind(bed.path(kind), 60.0) for kind in kinds)
    worker = hire(grace=GRACE)
    soon(lambda: all(bed.effects(kind).at for kind in kinds), 30, "not all began")
    took = _stop(worker, within=GRACE)

    assert bed.endings() == {"released": len(jobs)}
    _uncharged(bed)
    for kind, job_id in zip(kinds, jobs, strict=True):
        [attempt] = bed.attempts(job_id)
        assert bed.effects(kind).last < attempt.ended_at.timestamp(), kind
    tell(f"{len(jobs)} given back, {took:.2f} s")


def test_an_operators_drain_holds_also_where_a_handler_outlives_the_grace(
    bed: Bed, hire: Hire
) -> None:
    """No child comes in the place of the one that was asked to drain. Shows R31."""
    bed.enqueue([handlers.deaf.bind(bed.path("deaf"), 60)])
    worker = hire(concurrency=2, grace=2.0)
    soon(lambda: len(bed.effects("deaf").at) > 0, 30, "the worker did not begin")
    soon(lambda: len(bed.workers()) == 1, 10, "the worker is not known")
    [row] = bed.workers()
    bed.drain(row.id)

    assert worker.wait(20) == 0
    assert len(bed.workers()) == 1
    _uncharged(bed)


def test_a_second_signal_ends_it_at_once_and_gives_back(bed: Bed, hire: Hire, tell: Tell) -> None:
    """Shows R31."""
    took = []
    for turn in range(max(1, TIMES // 5)):
        path = bed.path(f"deaf-{turn}")
        jobs = bed.enqueue([handlers.deaf.bind(path, 60.0) for _ in range(5)])
        worker = hire(grace=25)
        soon(lambda jobs=jobs: bed.count(RUNNING) == len(jobs), 30, "not all began")  # type: ignore[misc]
        worker.send(signal.SIGTERM)
        time.sleep(0.3)
        took.append(_stop(worker, within=3.0))
        assert bed.endings() == {"released": len(jobs)}
        _uncharged(bed)
        bed.fetch("TRUNCATE tenure.job, tenure.attempt")
    tell(f"{len(took)} times, {max(took):.2f} s at most after the second signal")


def test_a_reload_replaces_the_children_and_loses_nothing(bed: Bed, hire: Hire, tell: Tell) -> None:
    """Shows R31."""
    jobs = bed.enqueue(_mixed(bed, 400))
    worker = hire(concurrency=10, processes=2, grace=GRACE)
    soon(lambda: bed.ended() > 0, 30, "the worker did not begin")
    before = worker.children
    worker.send(signal.SIGHUP)
    soon(
        lambda: len(worker.children) == 2 and not worker.children & before,
        GRACE + SPARE + 5,
        "the children were not replaced",
    )
    soon(lambda: bed.ended() == len(jobs), 60, "not all completed")
    assert set(bed.endings()) <= {"completed", "released"}
    assert worker.alive
    tell(f"{len(jobs)} completed, {bed.endings().get('released', 0)} given back")


def test_reloads_in_quick_succession_leave_as_many_children_as_wanted(bed: Bed, hire: Hire) -> None:
    """Shows R31."""
    jobs = bed.enqueue(_mixed(bed, 100))
    worker = hire(concurrency=10, processes=2, grace=GRACE)
    soon(lambda: bed.ended() > 0, 30, "the worker did not begin")
    before = worker.children
    for _ in range(3):
        worker.send(signal.SIGHUP)
        soon(lambda: bool(worker.children - before), 30, "no successor was started")
    soon(lambda: bed.ended() == len(jobs), 60, "not all completed")
    soon(
        lambda: len(worker.children) == 2 and not worker.children & before,
        3 * (GRACE + SPARE + 5),
        "the children were not replaced by as many",
    )
    assert worker.alive


def test_with_the_database_away_it_still_ends(bed: Bed, hire: Hire, tell: Tell) -> None:
    """What it holds cannot be given back: within its grace and five seconds it goes all the same,
    and the leases run out. Shows R31."""
    bed.enqueue([handlers.on_loop.bind(bed.path("loop"), 60.0) for _ in range(3)])
    with Proxy(bed.url) as proxy:
        worker = hire(proxy.url, grace=GRACE)
        soon(lambda: bed.count(RUNNING) == 3, 30, "not all began")
        proxy.cut()
        took = _stop(worker, within=GRACE + 5 + SPARE)
    tell(f"{took:.2f} s with a grace of {GRACE:g} s")
