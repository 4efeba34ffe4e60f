"""The crash suite of `just prove crash`, a tenth of it: real processes, SIGKILL and SIGSTOP."""

from __future__ import annotations

import pytest

from proof.crash import suite


@pytest.mark.timeout(300)
@pytest.mark.parametrize("part", suite.PARTS)
def test_nothing_is_lost_and_nothing_happens_twice(part: str) -> None:
    """The seed is in what the run prints; `just prove crash PART --short --seed N` repeats it."""
    report = suite.run(short=True, parts=[part])
    assert report.missed == []
