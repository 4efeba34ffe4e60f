"""Settle: every outcome through the rules of the life cycle, and where it leads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.store import SECOND, A, B
from tenure._model.attempt import AttemptOutcome
from tenure._model.job import State
from tenure._model.lease import SettleResult, SettleStatus
from tenure._model.outcome import (
    Cancelled,
    Failed,
    Released,
    Settlement,
    SettleRequest,
    Snoozed,
    Succeeded,
)
from tenure._rules import lifecycle
from tenure.config import Backoff
from tenure.errors import Error
from tests.conformance.acts import (
    BY,
    ERROR,
    a_job,
    claim,
    claim_one,
    count,
    ended,
    get,
    running,
    settle,
)

if TYPE_CHECKING:
    from support.store import Database
    from tenure._model.outcome import Outcome


def settled(state: State) -> SettleResult:
    return SettleResult(SettleStatus.SETTLED, state)


async def test_a_completed_job_keeps_its_result_reason_and_last_lease(db: Database) -> None:
    """Shows R5."""
    claimed = await running(db)
    db.clock.advance(SECOND)
    assert await settle(db, claimed, Succeeded([1, {"ü": None}])) == settled(State.COMPLETED)
    job = await get(db, claimed.job.id)

    assert (job.state, job.result, job.done_reason) == (
        State.COMPLETED,
        [1, {"ü": None}],
        "worker_done",
    )
    assert (job.claimed_by, job.token, job.attempt) == (A, claimed.lease.token, 1)
    assert job.ended_at == db.clock.now
    assert await count(db, "job") == 0


@pytest.mark.parametrize("value", [None, False, 0, "", [], {}, "text", 1.5, {"a": [None]}])
async def test_any_json_is_a_result(db: Database, value: object) -> None:
    claimed = await running(db)
    await settle(db, claimed, Succeeded(value))

    assert (await get(db, claimed.job.id)).result == value


async def test_a_failure_below_the_cap_is_tried_again_after_the_backoff(db: Database) -> None:
    """Shows R14."""
    claimed = await running(db, max_attempts=4)
    for attempt, wait in ((1, 30), (2, 60), (3, 120)):
        pause = lifecycle.delay(Backoff(), attempt=attempt, chance=0.0)
        [answer] = await db.run(
            db.store.settlement.settle([ended(claimed, Failed(ERROR), backoff=pause)])
        )
        assert answer == settled(State.QUEUED)
        job = await get(db, claimed.job.id)
        assert (job.attempt, job.run_at) == (attempt, db.clock.now + wait * SECOND)
        assert (job.claimed_by, job.claimed_at, job.lease_expires_at) == (None, None, None)
        db.clock.advance(wait * SECOND)
        claimed = await claim_one(db)

    assert await settle(db, claimed, Failed(ERROR)) == settled(State.FAILED)


async def test_a_failure_at_the_cap_is_a_dead_letter(db: Database) -> None:
    """Shows R15."""
    claimed = await running(db, max_attempts=1, key="k")
    error = Error("KeyError", "'a' is not in row 17", "Traceback …")
    assert await settle(db, claimed, Failed(error)) == settled(State.FAILED)
    job = await get(db, claimed.job.id)
    [dead] = await db.fetch("SELECT * FROM tenure.job_failed")

    assert (job.state, job.done_reason, job.attempt) == (State.FAILED, "attempts", 1)
    assert (dead["error_type"], dead["error_message"]) == ("KeyError", "'a' is not in row 17")
    assert dead["error_signature"] == "KeyError: … is not in row …"
    [attempt] = await db.run(db.store.jobs.attempts(job.id))
    assert (attempt.outcome, attempt.error_trace) == (AttemptOutcome.FAILED, "Traceback …")


@pytest.mark.parametrize("limited", [False, True])
async def test_the_default_cap_of_attempts_is_three(db: Database, *, limited: bool) -> None:
    """Shows R13."""
    if limited:
        await db.run(db.store.queues.limit("q", 1, BY))
    claimed = await running(db)
    states = []
    while claimed.job.state is State.RUNNING:
        answer = await settle(db, claimed, Failed(ERROR, after=0 * SECOND))
        states.append(answer.state)
        if answer.state is not State.QUEUED:
            break
        claimed = await claim_one(db)

    assert states == [State.QUEUED, State.QUEUED, State.FAILED]


async def test_the_cap_is_enforced_whatever_the_holder_asks_for(db: Database) -> None:
    """Shows R38."""
    claimed = await running(db, max_attempts=1)
    greedy = Settlement(State.QUEUED, AttemptOutcome.FAILED, error=ERROR, after=SECOND)
    [answer] = await db.run(db.store.settlement.settle([SettleRequest(claimed.lease, greedy)]))

    assert answer == settled(State.FAILED)
    assert (await get(db, claimed.job.id)).done_reason == "attempts"


async def test_a_failure_that_is_not_to_be_retried_ends_the_job(db: Database) -> None:
    claimed = await running(db)
    outcome = Failed(ERROR, retryable=False, reason="bad_input")
    assert await settle(db, claimed, outcome) == settled(State.FAILED)
    job = await get(db, claimed.job.id)

    assert (job.done_reason, job.attempt, job.max_attempts) == ("bad_input", 1, 3)


async def test_a_timeout_is_recorded_as_such(db: Database) -> None:
    """Shows R16."""
    claimed = await running(db)
    await settle(db, claimed, Failed(ERROR, timed_out=True))

    [attempt] = await db.run(db.store.jobs.attempts(claimed.job.id))
    assert attempt.outcome is AttemptOutcome.TIMED_OUT
    assert (await get(db, claimed.job.id)).state is State.QUEUED


@pytest.mark.parametrize(
    ("outcome", "ending", "wait"),
    [(Snoozed(90 * SECOND), AttemptOutcome.SNOOZED, 90), (Released(), AttemptOutcome.RELEASED, -5)],
    ids=["snooze", "release"],
)
async def test_snooze_and_release_give_the_attempt_back(
    db: Database, outcome: Outcome, ending: AttemptOutcome, wait: int
) -> None:
    """Shows R13."""
    claimed = await running(db, max_attempts=1)
    db.clock.advance(5 * SECOND)
    assert await settle(db, claimed, outcome) == settled(State.QUEUED)
    job = await get(db, claimed.job.id)

    assert (job.attempt, job.losses, job.claimed_by) == (0, 0, None)
    assert job.run_at == db.clock.now + wait * SECOND
    [attempt] = await db.run(db.store.jobs.attempts(job.id))
    assert (attempt.outcome, attempt.attempt) == (ending, 1)


async def test_a_released_job_is_claimable_at_once_by_another(db: Database) -> None:
    claimed = await running(db, max_attempts=1)
    await settle(db, claimed, Released())
    again = await claim_one(db, worker=B)

    assert (again.job.id, again.job.attempt, again.returned) == (claimed.job.id, 1, True)


async def test_a_handler_can_end_its_job_as_cancelled(db: Database) -> None:
    """Shows R12."""
    claimed = await running(db)
    assert await settle(db, claimed, Cancelled("not_needed")) == settled(State.CANCELLED)

    assert (await get(db, claimed.job.id)).done_reason == "not_needed"


async def test_batch_answers_keep_the_order_of_the_request(db: Database) -> None:
    await db.run(db.store.jobs.enqueue([a_job() for _ in range(4)]))
    a, b, c, d = await claim(db, count=4)
    await settle(db, d, Succeeded())
    batch = [
        ended(c, Succeeded()),
        ended(d, Succeeded()),
        ended(a, Failed(ERROR)),
        ended(b, Cancelled()),
    ]

    assert await db.run(db.store.settlement.settle(batch)) == [
        settled(State.COMPLETED),
        SettleResult(SettleStatus.REPEATED),
        settled(State.QUEUED),
        settled(State.CANCELLED),
    ]
    assert await db.run(db.store.settlement.settle([])) == []


@pytest.mark.parametrize("keyed", [False, True])
async def test_a_settled_job_leaves_nothing_among_the_live_ones(
    db: Database, *, keyed: bool
) -> None:
    jobs = [a_job(key=f"k{n}" if keyed else None) for n in range(30)]
    await db.run(db.store.jobs.enqueue(jobs))
    claimed = await claim(db, count=30)
    answers = await db.run(db.store.settlement.settle([ended(one, Succeeded()) for one in claimed]))

    assert set(answers) == {settled(State.COMPLETED)}
    assert (await count(db, "job"), await count(db, "job_archive")) == (0, 30)
    assert await count(db, "attempt") == 30
