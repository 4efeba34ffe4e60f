"""An app is pointed at a test's database or transaction, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
import pytest

from tenure import Tenure
from tenure.errors import ConfigError, InvalidValue
from tenure.testing import (
    assert_enqueued,
    assert_not_enqueued,
    drain,
    inline,
    use_connection,
    use_database,
)
from tests.testing import shop
from tests.testing.shop import done

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def connection(tenure_database: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(tenure_database) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS ledger (amount int)")
        connection.execute("DELETE FROM ledger")  # Tables of one's own are one's own to empty.
        connection.commit()
        yield connection
        connection.rollback()


def test_an_app_without_a_database_gets_one_for_a_while(
    tenure_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TENURE_DATABASE_URL", raising=False)
    monkeypatch.delenv("DATABASE_URL", raising=False)
    app = Tenure()

    @app.task
    def nothing() -> None: ...

    with use_database(app, tenure_database):
        nothing.enqueue()
        assert drain(app).completed == 1
    with pytest.raises(ConfigError, match="no database is configured"):
        nothing.enqueue()


def test_over_one_connection_everything_goes_with_the_rollback(
    app: Tenure, connection: psycopg.Connection
) -> None:
    with use_connection(app, connection):
        ledger = shop.ledger.enqueue(1)
        shop.crawl.enqueue(2)
        shop.apost.enqueue("Ada")
        assert drain(app).completed == 3
        with inline(app):
            shop.chain.enqueue(1)
        assert ledger.wait().state == "completed"
        assert_enqueued(shop.chain, count=2)

    assert connection.execute("SELECT amount FROM ledger").fetchall() == [(1,)]
    assert done == ["Ada", 1, 0]
    assert_not_enqueued(shop.ledger)
    connection.rollback()
    assert connection.execute("SELECT amount FROM ledger").fetchall() == []
    assert_not_enqueued(shop.ledger, connection=connection)


def test_over_a_connection_whose_transaction_has_not_begun_nothing_is_committed(
    app: Tenure, connection: psycopg.Connection
) -> None:
    with use_connection(app, connection):
        shop.ledger.enqueue(1)
        connection.rollback()
        assert_not_enqueued(shop.ledger)
        connection.rollback()
        with app.engine.transaction() as own:
            own.execute("INSERT INTO ledger VALUES (9)")
        connection.rollback()
    assert connection.execute("SELECT amount FROM ledger").fetchall() == []


def test_an_error_in_a_handlers_transaction_takes_back_only_that(
    app: Tenure, connection: psycopg.Connection
) -> None:
    connection.execute("INSERT INTO ledger VALUES (1)")
    with use_connection(app, connection):
        shop.ledger.enqueue(10**12)
        with pytest.raises(psycopg.errors.NumericValueOutOfRange):
            drain(app)
        [job] = assert_enqueued(shop.ledger)
    assert (job.state, job.attempt) == ("queued", 1)
    assert connection.execute("SELECT amount FROM ledger").fetchall() == [(1,)]


async def test_async_connection_serves_async_code(
    app: Tenure, tenure_database: str, connection: psycopg.Connection
) -> None:
    async with await psycopg.AsyncConnection.connect(tenure_database) as own:
        with use_connection(app, own), inline(app):
            await shop.aledger.aenqueue(6)
        rows = await (await own.execute("SELECT amount FROM ledger")).fetchall()
        await own.rollback()
    assert rows == [(6,)]


def test_what_cannot_work_there_is_refused_with_what_to_do(
    app: Tenure, connection: psycopg.Connection
) -> None:
    with pytest.raises(InvalidValue, match=r"session.connection\(\).connection.driver_connection"):
        use_connection(app, object()).__enter__()
    with use_connection(app, connection):
        shop.aledger.enqueue(1)
        with pytest.raises(InvalidValue, match="use_database instead of use_connection"):
            drain(app)


async def test_no_worker_runs_over_a_tests_connection(
    app: Tenure, connection: psycopg.Connection
) -> None:
    with use_connection(app, connection), pytest.raises(InvalidValue, match=r"drain\(app\)"):
        async with app.run():
            pass
