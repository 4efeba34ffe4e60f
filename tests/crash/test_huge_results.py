"""Results that are larger than any message: refused with a reason, without a death."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.workers import soon
from tests.crash import handlers

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.workers import Bed
    from tenure.task import BoundCall
    from tests.crash.conftest import Hire

HUGE = 100 * 2**20
KINDS: dict[str, Callable[[str, int], BoundCall[str]]] = {
    "in a thread": handlers.huge_in_thread.bind,
    "in a process": handlers.huge_in_process.bind,
}


@pytest.mark.parametrize("kind", KINDS)
def test_huge_result_is_unstorable_and_no_loss(bed: Bed, hire: Hire, kind: str) -> None:
    [job] = bed.enqueue([KINDS[kind](bed.path("huge"), HUGE)])
    hire()
    soon(lambda: not bed.job(job).state.is_live, 30, "it did not end")
    row = bed.job(job)
    assert (row.state, row.done_reason, row.losses) == ("failed", "unstorable", 0)
    assert len(bed.effects("huge").at) == 1, "it ran more than once"
