"""A job's transaction that stays open for longer than a lease costs no other job its lease."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.workers import soon
from tests.crash import handlers
from tests.crash.conftest import full_only

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.workers import Bed
    from tenure.task import BoundCall
    from tests.crash.conftest import Hire, Tell

OTHERS = 100


@pytest.mark.parametrize(
    "slow",
    [
        pytest.param(handlers.transact.bind, id="def"),
        pytest.param(handlers.transact_on_loop.bind, id="async def", marks=full_only),
    ],
)
def test_no_neighbour_loses_its_lease(
    bed: Bed, hire: Hire, tell: Tell, slow: Callable[[float], BoundCall[None]]
) -> None:
    """One hundred run beside it for as long, in the same worker. Shows R20."""
    bed.fetch("CREATE TABLE ledger (job_id bigint PRIMARY KEY)")
    held = 3 * handlers.LEASE
    jobs = bed.enqueue(
        [slow(held), *(handlers.nap.bind(bed.path("naps"), held) for _ in range(OTHERS))]
    )
    hire(concurrency=OTHERS + 1)
    soon(lambda: bed.ended() == len(jobs), 3 * held, "not all completed")

    assert bed.endings() == {"completed": len(jobs)}
    assert bed.count("SELECT sum(losses) FROM tenure.job_archive") == 0
    assert bed.count("SELECT count(*) FROM tenure.attempt WHERE late") == 0
    assert bed.fetch("SELECT job_id FROM ledger") == [{"job_id": jobs[0]}]
    fewest = bed.count("SELECT min(renewals) FROM tenure.attempt")
    assert fewest >= 6
    tell(f"{len(jobs)} completed, 0 lost, {fewest} renewals at least")
