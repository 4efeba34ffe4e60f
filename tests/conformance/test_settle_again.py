"""Settles that come late, twice, or from a former owner."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.store import SECOND, B
from tenure._model.attempt import AttemptOutcome
from tenure._model.ids import Token
from tenure._model.job import State
from tenure._model.lease import SettleResult, SettleStatus
from tenure._model.outcome import Failed, Released, Snoozed, Succeeded
from tests.conformance.acts import (
    BY,
    ERROR,
    claim_one,
    count,
    ended,
    get,
    lose,
    running,
    settle,
)

if TYPE_CHECKING:
    from support.store import Database
    from tenure._model.outcome import Outcome

REFUSED = SettleResult(SettleStatus.REFUSED)
REPEATED = SettleResult(SettleStatus.REPEATED)


async def test_a_settle_with_an_old_token_changes_nothing(db: Database) -> None:
    """Shows R5."""
    first = await running(db)
    await lose(db, first)
    second = await claim_one(db, worker=B)
    before = await get(db, first.job.id)

    assert await settle(db, first, Succeeded("late")) == REFUSED
    assert await get(db, first.job.id) == before
    answer = await settle(db, second, Succeeded("mine"))
    assert answer == SettleResult(SettleStatus.SETTLED, State.COMPLETED)
    assert (await get(db, first.job.id)).result == "mine"


async def test_the_same_worker_under_an_older_lease_is_a_former_owner_too(db: Database) -> None:
    """Shows R5."""
    first = await running(db)
    await lose(db, first)
    second = await claim_one(db)
    assert first.lease.claimed_by == second.lease.claimed_by

    assert await settle(db, first, Succeeded()) == REFUSED
    assert (await get(db, first.job.id)).state is State.RUNNING


@pytest.mark.parametrize("how", ["rescued", "revoked", "poison"])
async def test_a_refused_result_is_kept_on_its_attempt_as_evidence(db: Database, how: str) -> None:
    """Shows R5."""
    claimed = await running(db, max_losses=1 if how == "poison" else 3)
    if how == "revoked":
        await db.run(db.store.job_commands.revoke([claimed.job.id], BY))
    else:
        await lose(db, claimed)

    assert await settle(db, claimed, Succeeded({"rows": 7})) == REFUSED
    assert await settle(db, claimed, Failed(ERROR, retryable=False)) == REFUSED
    [attempt] = await db.run(db.store.jobs.attempts(claimed.job.id))
    assert attempt.outcome is (AttemptOutcome.REVOKED if how == "revoked" else AttemptOutcome.LOST)
    assert attempt.refused_result == {"state": "completed", "result": {"rows": 7}, "error": None}
    assert attempt.settle_repeats == 2


async def test_a_refused_error_is_kept_too(db: Database) -> None:
    """Shows R5."""
    claimed = await running(db)
    await lose(db, claimed)
    await settle(db, claimed, Failed(ERROR, retryable=False))

    [attempt] = await db.run(db.store.jobs.attempts(claimed.job.id))
    assert attempt.refused_result["error"] == "ValueError: no such thing"


async def test_a_result_that_is_late_but_not_too_late_is_accepted_and_marked(
    db: Database,
) -> None:
    """Shows R5."""
    claimed = await running(db)
    db.clock.advance(claimed.lease.ttl + SECOND)

    answer = await settle(db, claimed, Succeeded("done"))
    assert answer == SettleResult(SettleStatus.SETTLED, State.COMPLETED, late=True)
    [attempt] = await db.run(db.store.jobs.attempts(claimed.job.id))
    assert (attempt.late, attempt.outcome) == (True, AttemptOutcome.COMPLETED)
    assert (await db.run(db.store.leases.rescue())).jobs == []


async def test_a_result_in_time_is_not_late(db: Database) -> None:
    claimed = await running(db)
    db.clock.advance(claimed.lease.ttl - SECOND)

    assert not (await settle(db, claimed, Succeeded())).late
    [attempt] = await db.run(db.store.jobs.attempts(claimed.job.id))
    assert not attempt.late


@pytest.mark.parametrize(
    "outcome",
    [Succeeded(1), Failed(ERROR), Failed(ERROR, retryable=False), Snoozed(SECOND), Released()],
    ids=["completed", "retried", "failed", "snoozed", "released"],
)
async def test_settling_twice_is_harmless_and_counted(db: Database, outcome: Outcome) -> None:
    """Shows R5."""
    claimed = await running(db)
    await settle(db, claimed, outcome)
    before = await get(db, claimed.job.id)

    assert await settle(db, claimed, outcome) == REPEATED
    assert await settle(db, claimed, outcome) == REPEATED
    assert await get(db, claimed.job.id) == before
    [attempt] = await db.run(db.store.jobs.attempts(claimed.job.id))
    assert (attempt.settle_repeats, attempt.refused_result) == (2, None)


async def test_the_first_result_stands(db: Database) -> None:
    """Shows R20."""
    claimed = await running(db)
    await settle(db, claimed, Succeeded("first"))

    assert await settle(db, claimed, Succeeded("second")) == REPEATED
    assert (await get(db, claimed.job.id)).result == "first"


async def test_a_completion_after_ones_own_release_changes_nothing(db: Database) -> None:
    """Shows R5."""
    claimed = await running(db)
    await settle(db, claimed, Released())
    again = await claim_one(db, worker=B)
    answer = await settle(db, claimed, Succeeded("too late"))

    assert answer.answer is not SettleStatus.SETTLED
    assert (await get(db, claimed.job.id)).claimed_by == again.lease.claimed_by


@pytest.mark.parametrize("key", [None, "k"], ids=["plain", "keyed"])
@pytest.mark.parametrize(
    ("outcome", "state"),
    [
        (Succeeded("x"), State.COMPLETED),
        (Failed(ERROR), State.QUEUED),
        (Failed(ERROR, retryable=False), State.FAILED),
    ],
    ids=["completed", "retried", "failed"],
)
async def test_the_same_lease_twice_in_one_batch_settles_once(
    db: Database, outcome: Outcome, state: State, key: str | None
) -> None:
    claimed = await running(db, key=key)
    answers = await db.run(
        db.store.settlement.settle([ended(claimed, outcome), ended(claimed, outcome)])
    )

    assert answers[0] == SettleResult(SettleStatus.SETTLED, state)
    assert len(answers) == 2
    assert await count(db, "attempt") == 1


async def test_a_lease_that_never_was_is_refused(db: Database) -> None:
    """Shows R5."""
    claimed = await running(db)
    before = await get(db, claimed.job.id)
    for lease in (
        claimed.lease._replace(claimed_by=B),
        claimed.lease._replace(token=Token(claimed.lease.token + 1)),
        claimed.lease._replace(token=Token(0)),
    ):
        assert await settle(db, claimed._replace(lease=lease), Succeeded()) == REFUSED
    assert await get(db, claimed.job.id) == before
    assert await count(db, "attempt") == 0
