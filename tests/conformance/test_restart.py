"""A server that restarts: a lease that could not be renewed then counts against no job."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from support.cluster import Cluster
from support.databases import Databases
from support.store import SECOND, Database, install
from tenure._model.attempt import AttemptOutcome
from tenure._model.job import State
from tests.conformance.acts import begin, claim_one, enqueue, expire, get, lose, running

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator


@pytest.fixture(scope="module")
def own_cluster(pytestconfig: pytest.Config) -> Iterator[Cluster]:
    """A server that these tests may restart."""
    with Cluster(pytestconfig.getoption("--postgres")) as cluster:
        yield cluster


@pytest.fixture
async def db(own_cluster: Cluster) -> AsyncIterator[Database]:
    databases = Databases(own_cluster)
    database = Database(databases.create())
    install(database.url)
    database.clock.now = datetime.now(UTC)
    yield database
    await database.close()
    databases.drop(database.url)


async def restarted(db: Database, cluster: Cluster) -> Database:
    """The same database after a restart, at the real time."""
    await db.close()
    cluster.restart()
    again = Database(db.url)
    again.clock.now = datetime.now(UTC)
    return again


async def test_no_loss_is_counted_when_the_server_restarted_after_the_last_renewal(
    db: Database, own_cluster: Cluster
) -> None:
    """Shows R6."""
    claimed = await running(db)
    await begin(db, claimed)
    after = await restarted(db, own_cluster)
    await expire(after, claimed)

    job = await get(after, claimed.job.id)
    assert (job.state, job.attempt, job.suspect) == (State.QUEUED, 0, False)
    assert (job.losses, job.worker_losses, job.deaths) == (0, 0, 0)
    [attempt] = await after.run(after.store.jobs.attempts(job.id))
    assert (attempt.outcome, attempt.error_type) == (AttemptOutcome.RELEASED, "Outage")
    assert str(attempt.error_message).startswith("the database was restarted or failed over")
    again = await claim_one(after)
    assert again.returned
    await after.close()


async def test_a_lease_renewed_since_the_restart_is_lost_like_any_other(
    db: Database, own_cluster: Cluster
) -> None:
    """Shows R6."""
    claimed = await running(db, lease=600 * SECOND)
    after = await restarted(db, own_cluster)
    await lose(after, claimed)

    assert (await get(after, claimed.job.id)).worker_losses == 1
    await after.close()


async def test_a_job_that_fails_on_loss_fails_of_a_restart_too(
    db: Database, own_cluster: Cluster
) -> None:
    """A handler that began and did not end in time counts, whatever the cause."""
    claimed = await running(db, max_losses=0)
    await begin(db, claimed)
    after = await restarted(db, own_cluster)
    await expire(after, claimed)

    job = await get(after, claimed.job.id)
    assert (job.state, job.done_reason, job.deaths) == (State.FAILED, "lost", 0)
    await after.close()


async def test_what_was_acknowledged_is_there_after_a_crash(
    db: Database, own_cluster: Cluster
) -> None:
    """Shows R18."""
    job_id = await enqueue(db, args={"n": 1}, key="k")
    claimed = await claim_one(db)
    await db.close()
    own_cluster.kill()
    own_cluster.start()
    after = Database(db.url)
    job = await get(after, job_id)

    assert (job.state, job.args, job.token) == (State.RUNNING, {"n": 1}, claimed.lease.token)
    assert await enqueue(after, key="k") == job_id
    await after.close()
