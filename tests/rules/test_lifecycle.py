"""How a job goes from state to state: every outcome, every move, every ending at the caps."""

from __future__ import annotations

from datetime import timedelta
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure._model.ending import Ending
from tenure._model.job import State
from tenure._model.outcome import Cancelled, Error, Failed, Outcome, Released, Snoozed, Succeeded
from tenure._rules.lifecycle import MOVES, rescue, settle, verdict

ERROR = Error("ValueError", "no")
BACKOFF = timedelta(seconds=30)

durations = st.timedeltas(timedelta(0), timedelta(days=400))
attempts = st.integers(1, 40)
outcomes: st.SearchStrategy[Outcome] = st.one_of(
    st.builds(Succeeded, result=st.integers(), reason=st.sampled_from(["worker_done", "enough"])),
    st.builds(
        Failed,
        error=st.just(ERROR),
        retryable=st.booleans(),
        after=st.none() | durations,
        timed_out=st.booleans(),
    ),
    st.builds(Snoozed, pause=durations),
    st.builds(Released),
    st.builds(Cancelled),
)


def test_every_outcome_that_there_is_is_drawn_here() -> None:
    drawn = {Succeeded, Failed, Snoozed, Released, Cancelled}
    assert set(get_args(Outcome)) == drawn


@given(outcomes, attempts, attempts)
def test_a_settle_leads_where_a_running_job_may_go(
    outcome: Outcome, attempt: int, limit: int
) -> None:
    """Shows R12."""
    said = settle(outcome, attempt=attempt, limit=limit, backoff=BACKOFF)
    assert said.state in MOVES[State.RUNNING]


@given(outcomes, attempts, attempts)
def test_only_what_the_holder_gives_back_is_not_charged(
    outcome: Outcome, attempt: int, limit: int
) -> None:
    said = settle(outcome, attempt=attempt, limit=limit, backoff=BACKOFF)
    assert said.charged is not isinstance(outcome, Snoozed | Released)


@given(outcomes, attempts, attempts)
def test_a_job_that_ends_for_good_has_a_reason_and_no_time_to_wait(
    outcome: Outcome, attempt: int, limit: int
) -> None:
    said = settle(outcome, attempt=attempt, limit=limit, backoff=BACKOFF)
    if not said.state.is_live:
        assert said.reason
        assert said.after is None


@given(outcomes, attempts, attempts)
def test_what_the_row_decides_agrees_with_what_was_settled(
    outcome: Outcome, attempt: int, limit: int
) -> None:
    """The store judges again with the row's own counts; with the same counts it says the same."""
    said = settle(outcome, attempt=attempt, limit=limit, backoff=BACKOFF)
    judged = verdict(
        said.state, charged=said.charged, attempt=attempt, limit=limit, cancelled=False
    )
    assert judged is said.state


@given(attempts, attempts, st.booleans(), st.none() | durations)
def test_a_failure_below_the_cap_waits_and_at_the_cap_ends(
    attempt: int, limit: int, timed_out: bool, after: timedelta | None
) -> None:
    """Shows R13, R14 and R15."""
    outcome = Failed(ERROR, timed_out=timed_out, after=after)
    said = settle(outcome, attempt=attempt, limit=limit, backoff=BACKOFF)
    assert said.ending is (Ending.TIMED_OUT if timed_out else Ending.FAILED)
    assert said.error is ERROR
    if attempt < limit:
        assert said.state is State.QUEUED
        assert said.after == (BACKOFF if after is None else after)
    else:
        assert (said.state, said.reason) == (State.FAILED, "attempts")


@given(attempts, attempts)
def test_a_failure_that_is_not_to_be_retried_ends_at_once_with_its_reason(
    attempt: int, limit: int
) -> None:
    outcome = Failed(ERROR, retryable=False, reason="unknown_task")
    said = settle(outcome, attempt=attempt, limit=limit, backoff=BACKOFF)
    assert (said.state, said.reason) == (State.FAILED, "unknown_task")


def test_a_success_keeps_its_result_and_why_it_is_done() -> None:
    """Shows R23."""
    outcome = Succeeded({"rows": 3}, reason="no_more_results")
    said = settle(outcome, attempt=1, limit=3, backoff=BACKOFF)
    assert (said.state, said.ending) == (State.COMPLETED, Ending.COMPLETED)
    assert (said.result, said.reason) == ({"rows": 3}, "no_more_results")


def test_a_release_keeps_the_old_time_and_a_snooze_does_not() -> None:
    released = settle(Released(), attempt=1, limit=3, backoff=BACKOFF)
    snoozed = settle(Snoozed(timedelta(0)), attempt=1, limit=3, backoff=BACKOFF)
    assert (released.ending, released.after) == (Ending.RELEASED, None)
    assert (snoozed.ending, snoozed.after) == (Ending.SNOOZED, timedelta(0))


@pytest.mark.parametrize("charged", [True, False])
@pytest.mark.parametrize("asked", sorted(MOVES[State.RUNNING]))
def test_after_a_cancel_request_a_completion_is_accepted_and_all_else_is_cancelled(
    asked: State, charged: bool
) -> None:
    ended = verdict(asked, charged=charged, attempt=1, limit=3, cancelled=True)
    assert ended is (State.COMPLETED if asked is State.COMPLETED else State.CANCELLED)


@given(st.sampled_from(sorted(MOVES[State.RUNNING])), st.booleans(), attempts, attempts)
def test_a_verdict_sends_back_only_what_still_has_an_attempt(
    asked: State, charged: bool, attempt: int, limit: int
) -> None:
    """Shows R13."""
    ended = verdict(asked, charged=charged, attempt=attempt, limit=limit, cancelled=False)
    if asked is State.QUEUED and charged and attempt >= limit:
        assert ended is State.FAILED
    else:
        assert ended is asked


@given(attempts, attempts, attempts, attempts, st.booleans())
def test_a_rescue_leads_where_a_running_job_may_go_and_ends_with_a_reason(
    attempt: int, limit: int, losses: int, max_losses: int, cancelled: bool
) -> None:
    """Shows R6."""
    state, reason = rescue(
        attempt=attempt, limit=limit, losses=losses, max_losses=max_losses, cancelled=cancelled
    )
    assert state in MOVES[State.RUNNING] - {State.COMPLETED}
    assert (reason is None) is (state is State.QUEUED)


@pytest.mark.parametrize(
    ("attempt", "losses", "cancelled", "expected"),
    [
        (1, 1, False, (State.QUEUED, None)),
        (2, 2, False, (State.QUEUED, None)),
        (3, 1, False, (State.FAILED, "lost")),
        (1, 3, False, (State.FAILED, "poison")),
        (3, 3, False, (State.FAILED, "poison")),
        (9, 9, False, (State.FAILED, "poison")),
        (3, 3, True, (State.CANCELLED, "requested")),
        (1, 0, True, (State.CANCELLED, "requested")),
    ],
)
def test_poison_wins_over_lost_and_a_cancel_over_both(
    attempt: int, losses: int, cancelled: bool, expected: tuple[State, str | None]
) -> None:
    found = rescue(attempt=attempt, limit=3, losses=losses, max_losses=3, cancelled=cancelled)
    assert found == expected


def test_nothing_leaves_the_archive_and_a_dead_letter_only_begins_again() -> None:
    assert MOVES.keys() == set(State)
    assert not MOVES[State.COMPLETED] | MOVES[State.CANCELLED]
    assert MOVES[State.FAILED] == {State.QUEUED}
    assert MOVES[State.QUEUED] == {State.RUNNING, State.CANCELLED}
