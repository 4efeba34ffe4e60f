"""Who is charged with a loss when a child dies."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest

from tenure._model.ids import JobId, Token, WorkerId
from tenure._model.lease import Lease
from tenure._services.board import Entry, Phase
from tenure.worker.aftermath import suspects

WORKER = WorkerId(UUID(int=1))


@pytest.mark.parametrize(
    ("phases", "charged"),
    [
        ([Phase.STARTED, Phase.APART], [Phase.STARTED]),
        ([Phase.TIMED_OUT, Phase.WAITING], [Phase.TIMED_OUT]),
        ([Phase.APART, Phase.WAITING, Phase.ENDED], [Phase.APART]),
        ([Phase.WAITING, Phase.UNSTARTED, Phase.ENDED], []),
    ],
)
def test_what_had_not_begun_is_never_charged(phases: list[Phase], charged: list[Phase]) -> None:
    """A suspect that waits for its process has not begun: its loss would be counted for nothing,
    and three of those make poison of an innocent."""
    entries = [
        Entry(Lease(JobId(n), Token(1), WORKER, timedelta(seconds=30)), phase, 0.0, 1, 3)
        for n, phase in enumerate(phases)
    ]

    assert [entry.phase for entry in suspects(entries)] == charged
