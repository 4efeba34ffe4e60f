"""How long the parent waits for a beat of a child's service thread."""

from __future__ import annotations

import math

import pytest

from tenure.worker.child_process import SilenceTimer, patience

LOOK = 0.05


@pytest.mark.parametrize(
    ("lease", "seconds"), [(math.inf, 30), (300, 30), (30, 10), (12, 4), (3, 3), (0.5, 3)]
)
def test_a_third_of_the_shortest_lease_within_bounds(lease: float, seconds: float) -> None:
    assert patience(lease) == seconds


def test_silence_counts_from_the_last_beat() -> None:
    pulse = SilenceTimer()
    seen = [pulse.update(beat, now * LOOK) for now, beat in enumerate([1.0, 2.0, 2.0, 2.0, 3.0])]
    assert seen == pytest.approx([0, 0, LOOK, 2 * LOOK, 0])


def test_a_child_that_has_not_begun_to_beat_is_not_silent() -> None:
    pulse = SilenceTimer()
    assert [pulse.update(0.0, now * LOOK) for now in range(1000)] == [0.0] * 1000


def test_a_parent_that_did_not_run_itself_does_not_blame_its_child() -> None:
    """A suspended machine, a SIGSTOP of all of the worker: the first look after it finds an old
    beat, and the child needs a moment to make the next one."""
    pulse = SilenceTimer()
    pulse.update(1.0, 10.0)
    assert pulse.update(1.0, 3610.0) < patience(1.0)
