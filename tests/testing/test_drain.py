"""`drain` runs what is due, here and now, as a worker would."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import TYPE_CHECKING

import psycopg
import pytest

from tenure import Tenure
from tenure.errors import InvalidValue, PayloadError, Unreachable
from tenure.testing import adrain, drain, runner
from tests.testing import shop
from tests.testing.shop import Declined, Letter, done

if TYPE_CHECKING:
    from tenure._model.job import JobRow
    from tenure.handle import Handle

HOUR = timedelta(hours=1)


def row(handle: Handle[object]) -> JobRow:
    found = handle.get()
    assert found is not None
    return found


def test_everything_that_is_due_runs_by_priority_and_the_results_are_kept(app: Tenure) -> None:
    late = shop.post.enqueue(Letter("Ada", pages=3))
    soon = shop.post.using(priority=9).enqueue(Letter("Bob"))

    drained = drain(app)

    assert done == [Letter("Bob"), Letter("Ada", pages=3)]
    assert (len(drained), drained.completed, str(drained)) == (2, 2, "2 completed")
    assert (soon.wait(5).result, late.wait(5).result) == ("to Bob", "to Ada")
    assert len(drain(app)) == 0


def test_a_handler_runs_in_the_thread_of_the_test_and_in_a_context_of_its_own(app: Tenure) -> None:
    shop.whose.set("the test's")
    handle = shop.where.enqueue()

    drain(app)

    found = handle.wait(5).result
    assert found == {"thread": threading.get_ident(), "whose": "nobody's", "job": handle.id}


def test_what_a_handler_enqueues_runs_in_the_same_drain(app: Tenure) -> None:
    shop.chain.enqueue(3)
    assert drain(app).completed == 4
    assert done == [3, 2, 1, 0]


def test_only_the_queues_that_are_named_are_drained(app: Tenure) -> None:
    shop.post.enqueue(Letter("Ada"))
    other = shop.chain.enqueue(0)
    assert drain(app, queues=["mail"]).completed == 1
    assert row(other).state == "queued"
    with pytest.raises(InvalidValue, match=r"write queues=\['mail'\]"):
        drain(app, queues="mail")


def test_the_error_of_a_handler_is_raised_and_its_attempt_is_recorded(app: Tenure) -> None:
    handle = shop.charge.enqueue(7)

    with pytest.raises(Declined, match="order 7") as caught:
        drain(app)

    assert caught.value.__notes__ == [f"in job {handle.id} of {shop.charge.name}, attempt 1 of 2"]
    assert caught.traceback[-1].name == "charge"
    assert (row(handle).state, row(handle).attempt) == ("queued", 1)


def test_errors_are_shown_only_on_request(app: Tenure) -> None:
    shop.charge.enqueue(7)
    shop.chain.enqueue(0)

    drained = drain(app, raise_errors=False)

    assert (drained.retrying, drained.completed) == (1, 1)
    [error] = drained.errors
    assert isinstance(error, Declined)
    assert [ran.ending for ran in drained.ran] == ["retrying", "completed"]


def test_time_that_passes_brings_retries_until_the_job_has_failed(app: Tenure) -> None:
    handle = shop.charge.enqueue(7)

    assert drain(app, fast_forward=59, raise_errors=False).retrying == 1
    drained = drain(app, fast_forward=60, raise_errors=False)

    assert (drained.failed, done) == (1, [7, 7])
    assert (row(handle).state, row(handle).done_reason) == ("failed", "attempts")


def test_what_is_delayed_runs_at_its_time_and_what_that_delays_too(app: Tenure) -> None:
    first = shop.remind.using(delay=3600).enqueue(2)

    assert len(drain(app)) == 0
    drained = drain(app, fast_forward=HOUR * 2 + timedelta(minutes=1))

    assert done == [2, 1]
    ended = row(first)
    assert ended.ended_at is not None
    assert ended.ended_at >= ended.created_at + HOUR
    times = [ran.job.run_at for ran in drained.ran]
    assert times[1] - times[0] >= HOUR


@pytest.mark.parametrize(("what", "ending"), [("cancel", "cancelled"), ("snooze", "snoozed")])
def test_control_exceptions_are_reported_and_not_raised(
    app: Tenure, what: str, ending: str
) -> None:
    shop.says.enqueue(what)
    drained = drain(app)
    assert [(ran.ending, ran.error) for ran in drained.ran] == [(ending, None)]


@pytest.mark.parametrize(("what", "ending"), [("retry", "retrying"), ("give up", "failed")])
def test_what_a_handler_says_by_failing_is_raised(app: Tenure, what: str, ending: str) -> None:
    shop.says.enqueue(what)
    with pytest.raises(Exception, match=r"later|never"):
        drain(app)
    shop.says.enqueue(what)
    assert [ran.ending for ran in drain(app, raise_errors=False).ran] == [ending]


def test_a_result_that_cannot_be_stored_is_an_error(app: Tenure) -> None:
    shop.unstorable.enqueue()
    with pytest.raises(PayloadError, match="object"):
        drain(app)


def test_a_job_of_a_task_that_is_not_known_here_is_refused_and_given_back(
    app: Tenure, tenure_database: str
) -> None:
    other = Tenure(tenure_database)

    @other.task(name="elsewhere.task")
    def task() -> None: ...

    handle = task.enqueue()
    with pytest.raises(InvalidValue, match=r"'elsewhere.task'.*import the module"):
        drain(app)
    assert (row(handle).state, row(handle).attempt) == ("queued", 0)
    other.close()


def test_a_job_that_enqueues_itself_for_ever_is_noticed(app: Tenure) -> None:
    shop.chain.enqueue(100)
    with pytest.raises(InvalidValue, match=r"within 20 attempts, got more \(21 of .*chain"):
        drain(app, limit=20)


def test_a_sync_drain_runs_async_handlers_on_a_loop_of_their_own(app: Tenure) -> None:
    handle = shop.apost.enqueue("Ada")
    assert drain(app).completed == 1
    assert handle.wait(5).result == "Ada"


async def test_an_async_drain_runs_both_kinds(app: Tenure) -> None:
    one = await shop.apost.aenqueue("Ada")
    other = await shop.where.aenqueue()

    assert (await adrain(app)).completed == 2

    assert (await one.wait_async(5)).result == "Ada"
    assert (await other.wait_async(5)).result["thread"] != threading.get_ident()
    await app.aclose()


async def test_an_async_drain_raises_and_lets_time_pass_as_well(app: Tenure) -> None:
    await shop.charge.aenqueue(7)
    with pytest.raises(Declined):
        await adrain(app)
    drained = await adrain(app, fast_forward=60, raise_errors=False)
    assert drained.failed == 1
    await app.aclose()


async def test_a_sync_drain_where_a_loop_runs_says_what_to_write_for_async_handlers(
    app: Tenure,
) -> None:
    shop.apost.enqueue("Ada")
    with pytest.raises(InvalidValue, match=r"await adrain"):
        drain(app)


def test_exactly_once_effects_and_reports_work_as_in_a_worker(
    app: Tenure, tenure_database: str
) -> None:
    with psycopg.connect(tenure_database, autocommit=True) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS ledger (amount int)")
        connection.execute("DELETE FROM ledger")
        shop.ledger.enqueue(1)
        shop.aledger.enqueue(2)
        pages = shop.crawl.enqueue(3)

        assert drain(app).completed == 3

        rows = connection.execute("SELECT amount FROM ledger ORDER BY 1").fetchall()
    assert rows == [(1,), (2,)]
    assert row(pages).cursor == 3


def test_settle_waits_for_a_locked_row_and_then_reports(
    app: Tenure, tenure_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "_BUSY_TIMES", 2)
    handle = shop.locked.enqueue()
    with psycopg.connect(tenure_database) as connection:

        class Locking(list[object]):
            def append(self, found: object) -> None:
                connection.execute("SELECT 1 FROM tenure.job WHERE id = %s FOR UPDATE", [found])

        monkeypatch.setattr(shop, "done", Locking())
        with pytest.raises(Unreachable, match=f"job {handle.id} cannot be stored.*locked its row"):
            drain(app)


def test_a_negative_time_is_refused(app: Tenure) -> None:
    with pytest.raises(InvalidValue, match="fast_forward must be from 0"):
        drain(app, fast_forward=-1)
