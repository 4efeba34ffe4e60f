"""Losses: the three counters, what each kind of end costs, and when it is the last (rule 8)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.store import SECOND
from tenure._model.attempt import AttemptOutcome
from tenure._model.job import State
from tenure._model.outcome import (
    Failed,
    Lost,
    Released,
    Succeeded,
)
from tenure._rules.lifecycle import MAX_DEATHS, MAX_WORKER_LOSSES
from tests.conformance.acts import (
    BY,
    DEATH,
    DIED,
    ERROR,
    OUTAGE,
    OWN,
    begin,
    claim_a_suspect,
    claim_one,
    count,
    counters,
    enqueue,
    expire,
    get,
    lose,
    running,
    settle,
)

if TYPE_CHECKING:
    from support.store import Database
    from tenure._model.ids import JobId
    from tenure._model.outcome import Outcome


async def lost_at(db: Database, deaths: int) -> JobId:
    """A job that was lost this often in its life, with progress since."""
    job_id = await enqueue(db, max_losses=2)
    await db.fetch("UPDATE tenure.job SET deaths = $1 WHERE id = $2", deaths, job_id)
    return job_id


# The job's own process


async def test_a_death_of_the_jobs_own_process_is_a_loss_and_gives_the_attempt_back(
    db: Database,
) -> None:
    """Shows R15. It keeps its time and its place, before fresh work of its priority."""
    claimed = await running(db, max_attempts=1)
    db.clock.advance(SECOND)
    await enqueue(db)
    answer = await settle(db, claimed, OWN)

    assert (answer.state, answer.reason) == (State.QUEUED, None)
    job = await get(db, claimed.job.id)
    assert (job.attempt, job.run_at, job.suspect) == (0, claimed.job.run_at, True)
    assert await counters(db, job.id) == (1, 0, 1)
    again = await claim_one(db)
    assert (again.job.id, again.returned, again.confirm) == (job.id, True, True)


async def test_the_third_death_of_the_jobs_own_process_is_poison(db: Database) -> None:
    """Shows R15."""
    job_id = await enqueue(db, max_attempts=1)
    for losses in (1, 2):
        await settle(db, await claim_one(db), OWN)
        assert await counters(db, job_id) == (losses, 0, losses)
    answer = await settle(db, await claim_one(db), OWN)

    assert (answer.state, answer.reason) == (State.FAILED, "poison")
    job = await get(db, job_id)
    assert (job.state, job.done_reason) == (State.FAILED, "poison")
    assert await counters(db, job_id) == (3, 0, 3)


async def test_an_own_death_is_on_its_attempt_and_on_the_dead_letter(db: Database) -> None:
    """Shows R16."""
    claimed = await running(db, max_losses=1)
    await settle(db, claimed, OWN)

    [attempt] = await db.run(db.store.jobs.attempts(claimed.job.id))
    assert (attempt.outcome, attempt.attempt) == (AttemptOutcome.LOST, 1)
    assert (attempt.error_type, attempt.error_message) == (DEATH.type, DEATH.message)
    [dead] = await db.fetch(
        "SELECT error_type, error_message, error_signature FROM tenure.job_failed"
    )
    assert (dead["error_type"], dead["error_message"]) == (DEATH.type, DEATH.message)
    assert dead["error_signature"] == attempt.error_signature


# Anything else that died


async def test_a_death_of_a_shared_process_is_a_worker_loss_and_makes_a_suspect_at_once(
    db: Database,
) -> None:
    """Shows R7."""
    claimed = await running(db, max_attempts=1, max_losses=1)
    answer = await settle(db, claimed, DIED)

    assert (answer.state, answer.reason) == (State.QUEUED, None)
    job = await get(db, claimed.job.id)
    assert (job.attempt, job.run_at, job.suspect) == (0, claimed.job.run_at, True)
    assert await counters(db, job.id) == (0, 1, 1)
    assert (await claim_one(db)).returned


async def test_ten_deaths_of_shared_processes_are_poison(db: Database) -> None:
    """Shows R15."""
    job_id = await enqueue(db)
    for _ in range(MAX_WORKER_LOSSES - 1):
        answer = await settle(db, await claim_a_suspect(db), DIED)
        assert answer.state is State.QUEUED
    answer = await settle(db, await claim_a_suspect(db), DIED)

    assert (answer.state, answer.reason) == (State.FAILED, "poison")
    assert await counters(db, job_id) == (0, 10, 10)


async def test_the_kinds_of_loss_are_counted_apart(db: Database) -> None:
    job_id = await enqueue(db, max_losses=3)
    for end in (OWN, DIED, OWN, DIED):
        await settle(db, await claim_a_suspect(db), end)
    await lose(db, await claim_a_suspect(db))

    assert await counters(db, job_id) == (2, 3, 5)
    assert (await get(db, job_id)).state is State.QUEUED


async def test_a_loss_after_a_failure_keeps_the_count_of_attempts(db: Database) -> None:
    """Shows R13."""
    claimed = await running(db, max_attempts=2)
    await settle(db, claimed, Failed(ERROR, after=0 * SECOND))
    for end in (OWN, DIED):
        await settle(db, await claim_one(db), end)
    await lose(db, await claim_one(db))

    job = await get(db, claimed.job.id)
    assert (job.state, job.attempt) == (State.QUEUED, 1)


@pytest.mark.parametrize("end", [OWN, DIED])
async def test_a_cancel_that_was_requested_wins_over_a_loss(db: Database, end: Outcome) -> None:
    claimed = await running(db, max_losses=1)
    await db.run(db.store.job_commands.cancel([claimed.job.id], BY))
    answer = await settle(db, claimed, end)

    assert (answer.state, answer.reason) == (State.CANCELLED, "requested")
    assert (await get(db, claimed.job.id)).done_reason == "requested"


async def test_a_loss_that_the_parent_reports_after_the_rescue_counts_once(db: Database) -> None:
    """Shows R5."""
    claimed = await running(db)
    await lose(db, claimed)
    answer = await settle(db, claimed, OWN)

    assert answer.state is None
    assert await counters(db, claimed.job.id) == (0, 1, 1)


# Nothing is known


async def test_the_rescue_of_a_claim_that_may_not_have_begun_counts_only_a_death(
    db: Database,
) -> None:
    """Shows R6. The next claim is confirmed, so that the next loss is known."""
    claimed = await running(db)
    assert not claimed.confirm
    await expire(db, claimed)
    assert await counters(db, claimed.job.id) == (0, 0, 1)

    again = await claim_one(db)
    assert again.confirm
    assert await db.run(db.store.leases.confirm([again.lease])) == [True]
    await expire(db, again)
    assert await counters(db, claimed.job.id) == (0, 1, 2)


async def test_a_claim_of_the_previous_release_is_rescued_as_begun(db: Database) -> None:
    """It sets renewals to 0 for a fresh job, and has no other word for a beginning."""
    claimed = await running(db)
    await db.fetch("UPDATE tenure.job SET renewals = 0")
    await expire(db, claimed)

    job = await get(db, claimed.job.id)
    assert (job.state, job.attempt) == (State.QUEUED, 0)
    assert await counters(db, job.id) == (0, 1, 1)


@pytest.mark.parametrize("end", ["own", "shared", "rescue", "unknown"])
async def test_a_hundred_deaths_end_a_job_whatever_progress_it_makes(
    db: Database, end: str
) -> None:
    """Shows R15."""
    for deaths, state in ((MAX_DEATHS - 2, State.QUEUED), (MAX_DEATHS - 1, State.FAILED)):
        job_id = await lost_at(db, deaths)
        claimed = await claim_one(db)
        match end:
            case "own":
                await settle(db, claimed, OWN)
            case "shared":
                await settle(db, claimed, DIED)
            case "rescue":
                await lose(db, claimed)
            case _:
                await expire(db, claimed)
        job = await get(db, job_id)
        assert (job.state, job.deaths) == (state, deaths + 1)
        assert max(job.losses, job.worker_losses) <= 1
        if state is State.FAILED:
            assert job.done_reason == "poison"
        await db.run(db.store.job_commands.cancel([job_id], BY))


# Jobs that fail on loss


@pytest.mark.parametrize("end", [OWN, DIED, OUTAGE])
async def test_a_job_that_fails_on_loss_fails_of_every_end_but_its_handlers(
    db: Database, end: Outcome
) -> None:
    """Shows R15."""
    claimed = await running(db, max_losses=0, max_attempts=9)
    assert await db.run(db.store.leases.confirm([claimed.lease])) == [True]
    answer = await settle(db, claimed, end)

    assert (answer.state, answer.reason) == (State.FAILED, "lost")
    job = await get(db, claimed.job.id)
    assert (job.state, job.done_reason) == (State.FAILED, "lost")
    [dead] = await db.fetch("SELECT error_type, error_message FROM tenure.job_failed")
    assert isinstance(end, Lost | Released)
    assert end.error is not None
    assert (dead["error_type"], dead["error_message"]) == (end.error.type, end.error.message)


async def test_a_job_that_fails_on_loss_fails_when_it_is_rescued_after_its_confirmation(
    db: Database,
) -> None:
    """Shows R15."""
    claimed = await running(db, max_losses=0, max_attempts=9)
    assert await db.run(db.store.leases.confirm([claimed.lease])) == [True]
    rescued = await expire(db, claimed)

    assert (rescued.state, rescued.reason) == (State.FAILED, "lost")
    job = await get(db, claimed.job.id)
    assert (job.state, job.done_reason, job.worker_losses) == (State.FAILED, "lost", 1)


async def test_a_confirmation_says_of_a_job_enqueued_by_name_that_it_fails_on_loss(
    db: Database,
) -> None:
    claimed = await running(db)
    request = db.store.leases.confirm([claimed.lease], fail_on_loss=[True])
    assert await db.run(request) == [True]

    assert (await expire(db, claimed)).reason == "lost"


@pytest.mark.parametrize("end", ["rescue", "release"])
async def test_a_job_that_fails_on_loss_goes_back_if_it_never_began(db: Database, end: str) -> None:
    """Shows R7."""
    claimed = await running(db, max_losses=0, max_attempts=1)
    if end == "rescue":
        await expire(db, claimed)
    else:
        await settle(db, claimed, Released())

    job = await get(db, claimed.job.id)
    assert (job.state, job.attempt) == (State.QUEUED, 0)
    assert (await claim_one(db)).confirm


async def test_a_job_that_fails_on_loss_is_retried_when_its_handler_fails(db: Database) -> None:
    claimed = await running(db, max_losses=0)
    await begin(db, claimed)

    assert (await settle(db, claimed, Failed(ERROR))).state is State.QUEUED


async def test_what_its_holder_gives_back_costs_nothing(db: Database) -> None:
    """Shows R31. The reason is on the attempt."""
    claimed = await running(db, max_attempts=1, max_losses=1)
    await begin(db, claimed)
    answer = await settle(db, claimed, OUTAGE)

    assert answer.state is State.QUEUED
    job = await get(db, claimed.job.id)
    assert (job.attempt, job.run_at, job.suspect) == (0, claimed.job.run_at, False)
    assert await counters(db, job.id) == (0, 0, 0)
    [attempt] = await db.run(db.store.jobs.attempts(job.id))
    assert (attempt.outcome, attempt.error_type) == (AttemptOutcome.RELEASED, "Outage")


async def test_a_completed_job_keeps_its_losses_and_no_suspicion(db: Database) -> None:
    claimed = await running(db)
    await settle(db, claimed, OWN)
    await settle(db, await claim_one(db), Succeeded())

    job = await get(db, claimed.job.id)
    assert (job.state, job.losses, job.suspect) == (State.COMPLETED, 1, False)
    assert await count(db, "job") == 0
