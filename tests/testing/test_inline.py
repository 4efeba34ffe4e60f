"""`inline` runs a job where it is enqueued, and stores, claims and settles it for real."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import psycopg
import pytest

from tenure.admin import By
from tenure.errors import InvalidValue, PayloadError
from tenure.testing import drain, enqueued, inline
from tests.testing import shop
from tests.testing.shop import Declined, Letter, done

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tenure import Tenure


@pytest.fixture
def inlined(app: Tenure) -> Iterator[Tenure]:
    with inline(app):
        yield app


@pytest.fixture
def connection(tenure_database: str) -> Iterator[psycopg.Connection]:
    """A connection of the test's own, with a table, in a transaction that is never committed."""
    with psycopg.connect(tenure_database) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS ledger (amount int)")
        connection.execute("DELETE FROM ledger")
        connection.commit()
        connection.execute("SELECT 1")
        yield connection
        connection.rollback()


def test_an_enqueue_has_run_the_job_when_it_returns(inlined: Tenure) -> None:
    handle = shop.post.enqueue(Letter("Ada", pages=2))
    assert done == [Letter("Ada", pages=2)]
    assert handle.wait().result == "to Ada"


def test_the_job_that_ran_is_in_the_database_with_its_attempt(inlined: Tenure) -> None:
    handle = shop.crawl.enqueue(3)
    row = handle.get()
    assert row is not None
    assert (row.state, row.attempt, row.cursor, row.result) == ("completed", 1, 3, 3)
    assert [attempt.outcome for attempt in inlined.admin.jobs.attempts(handle.id)] == ["completed"]


def test_it_runs_in_the_thread_of_who_enqueues_with_its_handle_at_hand(inlined: Tenure) -> None:
    handle = shop.where.enqueue()
    found = handle.wait().result
    assert (found["thread"], found["job"]) == (threading.get_ident(), handle.id)


def test_after_the_block_nothing_runs_by_itself(app: Tenure) -> None:
    with inline(app):
        pass
    shop.chain.enqueue(0)
    assert done == []


def test_arguments_that_cannot_be_stored_fail_as_they_would_outside(inlined: Tenure) -> None:
    with pytest.raises(PayloadError):
        shop.chain.enqueue({1, 2})  # type: ignore[arg-type]  # That is the point.
    assert enqueued(shop.chain) == []


def test_the_error_of_a_handler_is_raised_by_the_enqueue_and_nothing_is_tried_again(
    inlined: Tenure,
) -> None:
    with pytest.raises(Declined, match="order 7"):
        shop.charge.enqueue(7)
    [job] = enqueued(shop.charge)
    assert (job.state, job.attempt, done) == ("queued", 1, [7])


def test_snooze_and_cancel_are_not_errors(inlined: Tenure) -> None:
    shop.says.enqueue("snooze")
    shop.says.enqueue("cancel")
    assert [job.state for job in enqueued(shop.says)] == ["queued", "cancelled"]


def test_what_is_delayed_is_stored_and_left(inlined: Tenure) -> None:
    handle = shop.remind.using(delay=60).enqueue(0)
    assert done == []
    with pytest.raises(TimeoutError, match="still queued"):
        handle.wait()
    assert drain(inlined, fast_forward=60).completed == 1


def test_what_a_handler_enqueues_runs_within_it(inlined: Tenure) -> None:
    shop.chain.enqueue(2)
    assert done == [2, 1, 0]


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("complete", ["returned", Letter("follower")]),
        (
            "transaction",
            ["in the transaction", Letter("follower"), "after the transaction", "returned"],
        ),
        ("target", [Letter("follower")]),
    ],
)
def test_follow_ups_run_when_the_job_is_completed(
    inlined: Tenure, how: str, expected: list[object]
) -> None:
    handle = shop.follow.using(target=1 if how == "target" else None).enqueue(how)
    assert done == expected
    assert handle.wait().state == "completed"


def test_what_a_handlers_transaction_enqueues_does_not_run_if_that_is_rolled_back(
    inlined: Tenure,
) -> None:
    with pytest.raises(Declined, match="in the transaction"):
        shop.broken.enqueue()
    assert done == []
    assert enqueued(shop.chain) == []


def test_several_that_are_enqueued_together_run_one_after_the_other(inlined: Tenure) -> None:
    handles = inlined.enqueue_many(shop.chain.bind(n) for n in (1, 0))
    assert done == [1, 0, 0]
    assert {handle.wait().state for handle in handles} == {"completed"}


def test_a_key_that_is_held_runs_nothing_twice(inlined: Tenure) -> None:
    shop.chain.using(key="one", key_for=60).enqueue(0)
    again = shop.chain.using(key="one").enqueue(0)
    assert (again.created, done) == (False, [0])


def test_jobs_that_were_there_before_are_left_alone(app: Tenure) -> None:
    before = shop.chain.enqueue(5)
    with inline(app):
        shop.chain.enqueue(0)
    assert done == [0]
    row = before.get()
    assert row is not None
    assert (row.state, row.attempt) == ("queued", 0)


def test_a_job_that_was_given_back_before_is_left_alone_too(app: Tenure) -> None:
    other = shop.where.enqueue()
    del app.tasks._tasks[shop.where.name]
    try:
        with pytest.raises(InvalidValue):
            drain(app)
    finally:
        app.tasks._tasks[shop.where.name] = shop.where.definition
    with inline(app):
        shop.chain.enqueue(0)
    row = other.get()
    assert done == [0]
    assert row is not None
    assert (row.state, row.attempt) == ("queued", 0)


def test_a_job_of_a_paused_queue_waits(inlined: Tenure) -> None:
    inlined.admin.queues.pause("mail", by=By("test"))
    shop.post.enqueue(Letter("Ada"))
    assert done == []


def test_in_a_callers_transaction_it_runs_before_the_commit_and_is_rolled_back_with_it(
    inlined: Tenure, connection: psycopg.Connection
) -> None:
    shop.ledger.using(connection=connection).enqueue(3)
    shop.chain.using(connection=connection).enqueue(1)

    assert connection.execute("SELECT amount FROM ledger").fetchall() == [(3,)]
    assert done == [1, 0]
    assert [job.state for job in enqueued(shop.ledger, connection=connection)] == ["completed"]
    assert len(enqueued(shop.chain, connection=connection)) == 2
    connection.rollback()
    assert connection.execute("SELECT amount FROM ledger").fetchall() == []
    assert enqueued(shop.chain) == enqueued(shop.ledger) == []


async def test_async_version_runs_on_the_callers_loop(inlined: Tenure) -> None:
    handle = await shop.apost.aenqueue("Ada")
    assert (await handle.wait_async()).result == "Ada"
    other = await shop.where.aenqueue()
    assert (await other.wait_async()).result["thread"] != threading.get_ident()
    with pytest.raises(Declined):
        await shop.charge.aenqueue(1)
    await inlined.aclose()


async def test_async_effects_and_follow_ups_are_as_in_a_worker(
    inlined: Tenure, connection: psycopg.Connection
) -> None:
    await shop.aledger.aenqueue(4)
    await shop.follow.aenqueue("complete")
    assert connection.execute("SELECT amount FROM ledger").fetchall() == [(4,)]
    assert done == ["returned", Letter("follower")]
    await inlined.aclose()


async def test_a_sync_enqueue_of_an_async_task_on_a_loop_says_what_to_write(
    inlined: Tenure,
) -> None:
    with pytest.raises(InvalidValue, match="await aenqueue"):
        shop.apost.enqueue("Ada")


async def test_in_a_callers_async_transaction_everything_is_rolled_back_with_it(
    inlined: Tenure, tenure_database: str, connection: psycopg.Connection
) -> None:
    async with await psycopg.AsyncConnection.connect(tenure_database) as own:
        await shop.aledger.using(connection=own).aenqueue(5)
        rows = await (await own.execute("SELECT amount FROM ledger")).fetchall()
        await own.rollback()
    assert rows == [(5,)]
    assert enqueued(shop.aledger) == []
    await inlined.aclose()
