"""The database cut off without a word: every kind of handler has left its last effect before its
lease's end on the database's clock."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

import pytest

from support.proxy import Proxy
from support.workers import soon
from tests.crash import handlers
from tests.crash.conftest import FULL, full_only

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from typing import TypeAlias

    from support.workers import Bed
    from tenure._model.ids import JobId
    from tenure.task import BoundCall
    from tests.crash.conftest import Hire, Tell

    Calls: TypeAlias = dict[str, Callable[[str], BoundCall[None]]]

WANTED = 100 if FULL else 5
LONG = 60.0
_chance = random.Random()  # noqa: S311 - any moment will do

pytestmark = pytest.mark.timeout(3600)


def _cut(bed: Bed, hire: Hire, calls: dict[str, BoundCall[None]], **options: object) -> list[float]:
    """Cut off a worker that runs these, all of them; how long before its lease's end each left
    its last effect, in seconds."""
    with Proxy(bed.url) as proxy:
        worker = hire(proxy.url, **options)
        ids = dict(zip(calls, bed.enqueue(calls.values()), strict=True))
        soon(lambda: all(bed.effects(name).at for name in calls), 30, "not all began")
        # Anywhere between two renewals.
        time.sleep(_chance.uniform(0.2, 0.2 + handlers.LEASE / 3))
        cut_at = time.time()
        proxy.cut()
        over = max(_lease_end(bed, job_id) for job_id in ids.values())
        time.sleep(max(0.0, over + 1 - time.time()))
        margins = []
        for name, job_id in ids.items():
            effects = bed.effects(name)
            assert effects.last > cut_at, "it had ended before the cut, which shows nothing"
            assert time.time() - effects.last > 1, "it still leaves effects"
            margins.append(_lease_end(bed, job_id) - effects.last)
        worker.kill()
    return margins


def _lease_end(bed: Bed, job_id: JobId) -> float:
    """The end of the running period's lease, as it was last granted."""
    row = bed.job(job_id)
    assert row.lease_expires_at is not None, f"job {job_id} is {row.state}: its period is over"
    end: datetime = row.lease_expires_at
    return end.timestamp()


def _rounds(bed: Bed, hire: Hire, kinds: Calls, *, each: int, **options: object) -> str:
    seen: dict[str, list[float]] = {kind: [] for kind in kinds}
    turn = 0
    while any(len(margins) < WANTED for margins in seen.values()):
        calls = {
            f"{kind}-{turn}-{n}": call(bed.path(f"{kind}-{turn}-{n}"))
            for kind, call in kinds.items()
            for n in range(each)
        }
        margins = _cut(bed, hire, calls, **options)
        for name, margin in zip(calls, margins, strict=True):
            seen[name.split("-")[0]].append(margin)
        bed.fetch("TRUNCATE tenure.job")
        turn += 1
    assert all(margin > 0 for margins in seen.values() for margin in margins), _figures(seen)
    return _figures(seen)


def _figures(seen: dict[str, list[float]]) -> str:
    return "; ".join(
        f"{kind} {sum(m > 0 for m in margins)} of {len(margins)} before their lease's end, "
        f"by {min(margins):.2f} to {max(margins):.2f} s"
        for kind, margins in seen.items()
    )


def test_responsive_handlers_stop_on_loop_threads_and_processes(
    bed: Bed, hire: Hire, tell: Tell
) -> None:
    """Shows R4."""
    kinds: Calls = {
        "loop": lambda path: handlers.on_loop.bind(path, LONG),
        "thread": lambda path: handlers.in_thread.bind(path, LONG),
        "process": lambda path: handlers.in_process.bind(path, LONG),
    }
    tell(_rounds(bed, hire, kinds, each=5, concurrency=15))


@full_only
def test_handler_that_ignores_everything_ends_with_its_child(
    bed: Bed, hire: Hire, tell: Tell
) -> None:
    """Shows R4."""
    kinds: Calls = {"deaf thread": lambda path: handlers.deaf.bind(path, LONG)}
    tell(_rounds(bed, hire, kinds, each=5, concurrency=1, processes=5))


def test_a_blocked_loop_ends_with_its_child(bed: Bed, hire: Hire, tell: Tell) -> None:
    """Shows R4."""
    kinds: Calls = {"blocked loop": lambda path: handlers.blocking.bind(path, LONG)}
    tell(_rounds(bed, hire, kinds, each=5, concurrency=1, processes=5))


@pytest.mark.parametrize("grip", [0.05, 1.0], ids=["shorter", "longer"])
def test_what_holds_the_gil_is_ended_by_the_parent(
    bed: Bed, hire: Hire, tell: Tell, grip: float
) -> None:
    """Calls that are shorter than the margins, and longer. Shows R4."""
    kinds: Calls = {f"GIL {grip:g} s": lambda path: handlers.gripping.bind(path, LONG, grip)}
    tell(_rounds(bed, hire, kinds, each=5, concurrency=1, processes=5))


def test_a_program_that_a_process_waits_for_is_stopped_with_it(
    bed: Bed, hire: Hire, tell: Tell
) -> None:
    """Shows R4."""
    kinds: Calls = {"program": handlers.with_a_program.bind}
    tell(_rounds(bed, hire, kinds, each=5, concurrency=5))
