"""What is told of jobs that came, began, were lost and began again."""

from __future__ import annotations

from bench.speed.history import History, Loss


def test_the_first_start_ends_the_wait() -> None:
    history = History.of({1: 10.0, 2: 10.0}, [(1, 10.5), (2, 10.1), (1, 40.0)])
    assert dict(history.spans()) == {1: (10.0, 10.5), 2: (10.0, 10.1)}
    assert history.over(0.3) == {1: (10.0, 10.5)}


def test_windows_go_by_when_jobs_were_sent() -> None:
    history = History.of({1: 0.0, 2: 9.9, 3: 10.0, 4: 20.1}, [(n, 30.0) for n in (1, 2, 3, 4)])
    assert [waits.count for waits in history.windows(0.0, 10.0, 2)] == [2, 2]


def test_a_lost_job_returns_with_its_next_start_after_the_kill() -> None:
    history = History.of({1: 0.0, 2: 0.0}, [(1, 1.0), (1, 33.0), (2, 32.5)])
    losses = [Loss(1, 0.9, 32.0), Loss(2, 1.0, 32.0)]
    assert history.returns(losses, [2.0]) == ([31.0, 30.5], 0)


def test_a_claim_that_was_granted_after_the_kill_is_of_the_killed() -> None:
    history = History.of({1: 0.0}, [(1, 33.0)])
    assert history.returns([Loss(1, 2.1, 32.1)], [2.0]) == ([31.0], 0)


def test_loss_without_a_kill_is_reported() -> None:
    history = History.of({1: 0.0}, [(1, 1.0), (1, 40.0)])
    assert history.returns([Loss(1, 5.0, 35.0)], [2.0]) == ([], 1)
