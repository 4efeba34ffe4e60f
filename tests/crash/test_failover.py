"""A few failovers of `just prove failover`: Patroni, etcd, a synchronous standby, under load."""

from __future__ import annotations

import pytest

from proof.failover import suite


@pytest.mark.timeout(400)
def test_failovers_lose_nothing_that_was_acknowledged() -> None:
    """Shows R18, R34. The seed is in what the run prints."""
    report = suite.run(suite.SHORT, parts=["synchronous"])
    assert report.missed == []


@pytest.mark.timeout(200)
def test_a_cancelled_commit_wait_is_never_acknowledged() -> None:
    """Shows R18."""
    report = suite.run(suite.SHORT, parts=["cancelled"])
    assert report.missed == []


@pytest.mark.timeout(200)
def test_no_fence_is_handed_out_twice_after_an_asynchronous_failover() -> None:
    """Shows R34."""
    report = suite.run(suite.SHORT, parts=["asynchronous"])
    assert report.missed == []
