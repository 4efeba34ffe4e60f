"""How a job goes from state to state: every outcome, every move, every ending at the caps."""

from __future__ import annotations

from datetime import timedelta
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure._model.attempt import AttemptOutcome
from tenure._model.job import State
from tenure._model.outcome import (
    Cancelled,
    Failed,
    Loss,
    Lost,
    Outcome,
    Released,
    Snoozed,
    Succeeded,
)
from tenure._rules.lifecycle import (
    ALONE_DEATHS,
    MAX_DEATHS,
    MAX_WORKER_LOSSES,
    MOVES,
    LossCounters,
    becomes_suspect,
    rescue,
    settle,
    verdict,
)
from tenure.errors import Error

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
    st.builds(Released, begun=st.booleans(), error=st.none() | st.just(ERROR)),
    st.builds(Lost, loss=st.sampled_from([Loss.OWN, Loss.SHARED]), error=st.just(ERROR)),
    st.builds(Cancelled, reason=st.sampled_from(["requested", "expired"])),
)
counted = st.builds(
    LossCounters,
    losses=st.integers(0, 9),
    worker_losses=st.integers(0, MAX_WORKER_LOSSES - 1),
    deaths=st.integers(0, MAX_DEATHS - 1),
)


def test_every_outcome_that_there_is_is_drawn_here() -> None:
    drawn = {Succeeded, Failed, Snoozed, Released, Lost, Cancelled}
    assert set(get_args(Outcome)) == drawn


@given(outcomes, attempts, attempts)
def test_a_settle_leads_where_a_running_job_may_go(
    outcome: Outcome, attempt: int, limit: int
) -> None:
    """Shows R12."""
    answer = settle(outcome, attempt=attempt, limit=limit, backoff=BACKOFF)
    assert answer.state in MOVES[State.RUNNING]


@given(outcomes, attempts, attempts)
def test_only_what_the_holder_gives_back_is_not_charged(
    outcome: Outcome, attempt: int, limit: int
) -> None:
    answer = settle(outcome, attempt=attempt, limit=limit, backoff=BACKOFF)
    assert answer.charged is not isinstance(outcome, Snoozed | Released | Lost)


@given(outcomes, attempts, attempts)
def test_a_job_that_ends_for_good_has_a_reason_and_no_time_to_wait(
    outcome: Outcome, attempt: int, limit: int
) -> None:
    answer = settle(outcome, attempt=attempt, limit=limit, backoff=BACKOFF)
    if not answer.state.is_live:
        assert answer.reason
        assert answer.after is None


@given(outcomes, attempts, attempts)
def test_what_the_row_decides_agrees_with_what_was_settled(
    outcome: Outcome, attempt: int, limit: int
) -> None:
    """The store judges again with the row's own counts; with the same counts it says the same."""
    answer = settle(outcome, attempt=attempt, limit=limit, backoff=BACKOFF)
    found = verdict(
        answer, attempt=attempt, limit=limit, counters=LossCounters(), max_losses=3, cancelled=False
    )
    assert found == (answer.state, answer.reason)


@given(attempts, attempts, st.booleans(), st.none() | durations)
def test_a_failure_below_the_cap_waits_and_at_the_cap_ends(
    attempt: int, limit: int, timed_out: bool, after: timedelta | None
) -> None:
    """Shows R13, R14 and R15."""
    outcome = Failed(ERROR, timed_out=timed_out, after=after)
    answer = settle(outcome, attempt=attempt, limit=limit, backoff=BACKOFF)
    assert answer.ending is (AttemptOutcome.TIMED_OUT if timed_out else AttemptOutcome.FAILED)
    assert answer.error is ERROR
    if attempt < limit:
        assert answer.state is State.QUEUED
        assert answer.after == (BACKOFF if after is None else after)
    else:
        assert (answer.state, answer.reason) == (State.FAILED, "attempts")


@given(attempts, attempts)
def test_a_failure_that_is_not_to_be_retried_ends_at_once_with_its_reason(
    attempt: int, limit: int
) -> None:
    outcome = Failed(ERROR, retryable=False, reason="unknown_task")
    answer = settle(outcome, attempt=attempt, limit=limit, backoff=BACKOFF)
    assert (answer.state, answer.reason) == (State.FAILED, "unknown_task")


def test_a_success_keeps_its_result_and_why_it_is_done() -> None:
    """Shows R23."""
    outcome = Succeeded({"rows": 3}, reason="no_more_results")
    answer = settle(outcome, attempt=1, limit=3, backoff=BACKOFF)
    assert (answer.state, answer.ending) == (State.COMPLETED, AttemptOutcome.COMPLETED)
    assert (answer.result, answer.reason) == ({"rows": 3}, "no_more_results")


def test_a_loss_and_a_begun_release_say_what_they_cost_and_why() -> None:
    lost = settle(Lost(Loss.OWN, ERROR), attempt=3, limit=3, backoff=BACKOFF)
    assert (lost.state, lost.ending, lost.after) == (State.QUEUED, AttemptOutcome.LOST, None)
    assert (lost.loss, lost.error) == (Loss.OWN, ERROR)
    begun = settle(Released(begun=True, error=ERROR), attempt=3, limit=3, backoff=BACKOFF)
    assert (begun.state, begun.loss, begun.error) == (State.QUEUED, Loss.BEGUN, ERROR)
    assert settle(Released(), attempt=3, limit=3, backoff=BACKOFF).loss is None


def test_a_release_keeps_the_old_time_and_a_snooze_does_not() -> None:
    released = settle(Released(), attempt=1, limit=3, backoff=BACKOFF)
    snoozed = settle(Snoozed(timedelta(0)), attempt=1, limit=3, backoff=BACKOFF)
    assert (released.ending, released.after) == (AttemptOutcome.RELEASED, None)
    assert (snoozed.ending, snoozed.after) == (AttemptOutcome.SNOOZED, timedelta(0))


@given(outcomes, attempts, attempts, st.integers(0, 3), counted)
def test_after_a_cancel_request_a_completion_is_accepted_and_all_else_is_cancelled(
    outcome: Outcome, attempt: int, limit: int, max_losses: int, counters: LossCounters
) -> None:
    answer = settle(outcome, attempt=attempt, limit=limit, backoff=BACKOFF)
    ended, reason = verdict(
        answer,
        attempt=attempt,
        limit=limit,
        counters=counters,
        max_losses=max_losses,
        cancelled=True,
    )
    assert ended is (State.COMPLETED if answer.state is State.COMPLETED else State.CANCELLED)
    assert reason == (answer.reason if ended is answer.state else "requested")


@given(outcomes, attempts, attempts, attempts)
def test_a_verdict_sends_back_only_what_still_has_an_attempt(
    outcome: Outcome, before: int, attempt: int, limit: int
) -> None:
    """Shows R13. The row may have counted on since the claim."""
    answer = settle(outcome, attempt=before, limit=limit, backoff=BACKOFF)
    found = verdict(
        answer, attempt=attempt, limit=limit, counters=LossCounters(), max_losses=3, cancelled=False
    )
    if answer.state is State.QUEUED and answer.charged and attempt >= limit:
        assert found == (State.FAILED, "attempts")
    else:
        assert found == (answer.state, answer.reason)


def judged(outcome: Outcome, counters: LossCounters, max_losses: int) -> tuple[State, str | None]:
    """Where the first attempt of one leads that ends so."""
    answer = settle(outcome, attempt=1, limit=1, backoff=BACKOFF)
    return verdict(
        answer, attempt=1, limit=1, counters=counters, max_losses=max_losses, cancelled=False
    )


BACK = (State.QUEUED, None)
POISON = (State.FAILED, "poison")
OWN, SHARED = Lost(Loss.OWN, ERROR), Lost(Loss.SHARED, ERROR)


@pytest.mark.parametrize(
    ("outcome", "counters", "expected"),
    [
        (OWN, LossCounters(0, 9, 0), BACK),
        (OWN, LossCounters(1, 9, 98), BACK),
        (OWN, LossCounters(2, 0, 0), POISON),
        (OWN, LossCounters(0, 0, 99), POISON),
        (SHARED, LossCounters(2, 0, 0), BACK),
        (SHARED, LossCounters(2, 8, 98), BACK),
        (SHARED, LossCounters(0, 9, 0), POISON),
        (SHARED, LossCounters(0, 0, 99), POISON),
        (Released(begun=True), LossCounters(2, 9, 99), BACK),
        (Released(), LossCounters(2, 9, 99), BACK),
    ],
)
def test_a_loss_is_poison_at_its_own_cap_or_at_the_cap_of_deaths(
    outcome: Outcome, counters: LossCounters, expected: tuple[State, str | None]
) -> None:
    """Shows R15."""
    assert judged(outcome, counters, 3) == expected


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (OWN, (State.FAILED, "lost")),
        (SHARED, (State.FAILED, "lost")),
        (Released(begun=True), (State.FAILED, "lost")),
        (Released(), BACK),
        (Snoozed(BACKOFF), BACK),
        (Failed(ERROR), (State.FAILED, "attempts")),
        (Succeeded(), (State.COMPLETED, "worker_done")),
    ],
)
def test_a_job_that_fails_on_loss_fails_of_every_end_of_a_begun_attempt_but_its_own(
    outcome: Outcome, expected: tuple[State, str | None]
) -> None:
    """Shows R15."""
    assert judged(outcome, LossCounters(), 0) == expected


@given(st.sampled_from([None, *Loss]), counted)
def test_every_end_is_counted_by_one_counter_at_most_and_a_death_once(
    loss: Loss | None, before: LossCounters
) -> None:
    after = before.after(loss)
    grown = (after.losses - before.losses, after.worker_losses - before.worker_losses)
    assert grown == {Loss.OWN: (1, 0), Loss.SHARED: (0, 1)}.get(loss or Loss.BEGUN, (0, 0))
    assert after.deaths - before.deaths == sum(grown)


@given(counted, st.integers(0, 9), st.booleans(), st.booleans(), st.booleans())
def test_a_rescue_leads_where_a_running_job_may_go_and_ends_with_a_reason(
    counters: LossCounters, max_losses: int, begun: bool, excused: bool, cancelled: bool
) -> None:
    """Shows R6."""
    state, reason, now = rescue(
        counters=counters, max_losses=max_losses, begun=begun, excused=excused, cancelled=cancelled
    )
    assert state in MOVES[State.RUNNING] - {State.COMPLETED}
    assert (reason is None) is (state is State.QUEUED)
    assert now.losses == counters.losses
    assert now.worker_losses - counters.worker_losses == (begun and not excused)
    assert now.deaths - counters.deaths == (not excused)


@pytest.mark.parametrize(
    ("counters", "max_losses", "begun", "cancelled", "expected"),
    [
        (LossCounters(0, 0, 0), 3, True, False, BACK),
        (LossCounters(2, 8, 98), 3, True, False, BACK),
        (LossCounters(0, 9, 9), 3, True, False, POISON),
        (LossCounters(0, 9, 9), 3, False, False, BACK),
        (LossCounters(0, 0, 99), 3, False, False, POISON),
        (LossCounters(0, 0, 99), 3, True, False, POISON),
        (LossCounters(0, 0, 0), 0, True, False, (State.FAILED, "lost")),
        (LossCounters(0, 9, 99), 0, True, False, (State.FAILED, "lost")),
        (LossCounters(0, 0, 0), 0, False, False, BACK),
        (LossCounters(0, 9, 99), 0, False, False, POISON),
        (LossCounters(0, 9, 99), 0, True, True, (State.CANCELLED, "requested")),
        (LossCounters(0, 0, 0), 3, False, True, (State.CANCELLED, "requested")),
    ],
)
def test_a_rescue_ends_a_job_at_a_cap_or_on_its_loss_and_a_cancel_wins(
    counters: LossCounters,
    max_losses: int,
    begun: bool,
    cancelled: bool,
    expected: tuple[State, str | None],
) -> None:
    """Shows R15."""
    state, reason, _ = rescue(
        counters=counters, max_losses=max_losses, begun=begun, excused=False, cancelled=cancelled
    )
    assert (state, reason) == expected


def test_what_the_server_could_not_renew_counts_nothing_but_ends_what_fails_on_loss() -> None:
    for max_losses, expected in ((3, BACK), (0, (State.FAILED, "lost"))):
        state, reason, now = rescue(
            counters=LossCounters(2, 9, 99),
            max_losses=max_losses,
            begun=True,
            excused=True,
            cancelled=False,
        )
        assert (state, reason) == expected
        assert now == LossCounters(2, 9, 99)


@pytest.mark.parametrize(
    ("before", "after", "suspect"),
    [
        (LossCounters(0, 0, 0), LossCounters(0, 1, 1), False),
        (LossCounters(0, 1, 1), LossCounters(0, 2, 2), True),
        (LossCounters(0, 4, 4), LossCounters(0, 5, 5), True),
        (LossCounters(0, 1, 1), LossCounters(0, 1, 2), False),
        (LossCounters(0, 2, 2), LossCounters(0, 2, 3), False),
    ],
)
def test_a_rescue_makes_a_suspect_from_the_second_worker_loss_in_a_row_on(
    before: LossCounters, after: LossCounters, suspect: bool
) -> None:
    """Shows R7. The first is nearly always a machine's."""
    assert becomes_suspect(before, after) is suspect


def test_a_job_with_many_deaths_is_suspect_although_its_cursor_moves() -> None:
    before = LossCounters(0, 0, ALONE_DEATHS - 1)
    assert becomes_suspect(before, LossCounters(0, 1, ALONE_DEATHS))
    assert not becomes_suspect(before, LossCounters(0, 0, ALONE_DEATHS)), "it had not begun"
    assert not becomes_suspect(LossCounters(0, 0, 5), LossCounters(0, 1, 6))


def test_nothing_leaves_the_archive_and_a_dead_letter_only_begins_again() -> None:
    assert MOVES.keys() == set(State)
    assert not MOVES[State.COMPLETED] | MOVES[State.CANCELLED]
    assert MOVES[State.FAILED] == {State.QUEUED}
    assert MOVES[State.QUEUED] == {State.RUNNING, State.CANCELLED}
