"""The proxy does to connections what it says, and counts what it did."""

from __future__ import annotations

import asyncio
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import asyncpg
import psycopg
import pytest

from support.processes import wait_for
from support.proxy import COMMIT_CUT, QUERY_CUT, RESET, Proxy
from tests.timing import median, seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future

CLIENTS = 12


def seeded() -> Random:
    return Random(7)  # noqa: S311 - chooses faults, keeps no secret


@pytest.fixture
def url(empty_database: str) -> str:
    with psycopg.connect(empty_database) as connection:
        connection.execute("CREATE TABLE thing (id integer)")
    return empty_database


@pytest.fixture
def proxy(url: str) -> Iterator[Proxy]:
    with Proxy(url, seeded()) as proxy:
        yield proxy


def things(url: str) -> int:
    with psycopg.connect(url) as connection:
        [(count,)] = connection.execute("SELECT count(*) FROM thing").fetchall()
        return int(count)


def in_a_transaction(url: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("INSERT INTO thing VALUES (1)")


def in_a_pipeline(url: str) -> None:
    with psycopg.connect(url) as connection, connection.pipeline():
        connection.execute("INSERT INTO thing VALUES (1)", prepare=True)
        connection.commit()


def alone(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("INSERT INTO thing VALUES (%s)", (1,))


def by_asyncpg(url: str) -> None:
    async def insert() -> None:
        connection = await asyncpg.connect(url, timeout=10)
        try:
            async with connection.transaction():
                await connection.execute("INSERT INTO thing VALUES ($1)", 1)
        finally:
            connection.terminate()
            await asyncio.sleep(0)

    asyncio.run(insert())


def failed(future: Future[None]) -> bool:
    return future.done() and isinstance(
        future.exception(), (psycopg.OperationalError, asyncpg.PostgresError, OSError)
    )


@pytest.mark.parametrize("insert", [in_a_transaction, in_a_pipeline, by_asyncpg])
def test_an_answer_to_a_commit_is_lost_after_the_commit(
    url: str, insert: Callable[[str], None]
) -> None:
    with ThreadPoolExecutor(CLIENTS) as pool:
        with Proxy(url, seeded()) as proxy:
            proxy.cut_after_commit(CLIENTS)
            futures = [pool.submit(insert, proxy.url) for _ in range(CLIENTS)]
            assert wait_for(lambda: proxy.counts.total() == CLIENTS, 20)
            reset, silent = (proxy.counts[f"{COMMIT_CUT}, {how}"] for how in ("reset", "silence"))
            assert min(reset, silent) > 0
            assert reset + silent == CLIENTS == proxy.lost(COMMIT_CUT)
            assert wait_for(lambda: sum(map(failed, futures)) == reset, 10)
            assert sum(future.done() for future in futures) == reset
            assert things(url) == CLIENTS
            insert(proxy.url)  # There is no more to be cut.
        assert wait_for(lambda: all(map(failed, futures)), 10)
    assert things(url) == CLIENTS + 1


def test_an_answer_to_a_query_is_lost_after_it_was_done(url: str, proxy: Proxy) -> None:
    proxy.cut_after_query(containing=b"INSERT")
    with ThreadPoolExecutor(1) as pool, psycopg.connect(proxy.url, autocommit=True) as bystander:
        lost = pool.submit(alone, proxy.url)
        assert wait_for(lambda: proxy.counts.total() == 1, 10)
        assert proxy.lost(QUERY_CUT) == 1
        assert things(url) == 1
        assert bystander.execute("SELECT 1").fetchone() == (1,)
        proxy.reset()
        assert wait_for(lambda: failed(lost), 10)


def test_only_a_share_of_queries_is_struck(url: str, proxy: Proxy) -> None:
    proxy.cut_after_query(100, share=0.02)
    with ThreadPoolExecutor(1) as pool:
        done = 0

        def many() -> None:
            nonlocal done
            with psycopg.connect(proxy.url, autocommit=True) as connection:
                for _ in range(10000):
                    connection.execute("SELECT 1")
                    done += 1

        pool.submit(many)
        assert wait_for(lambda: proxy.counts.total() == 1, 20)
        proxy.restore()
        proxy.reset()
    assert 0 < done < 1000


def test_an_answer_that_does_not_come_is_not_waited_for(url: str, proxy: Proxy) -> None:
    proxy.cut_after_query()
    with ThreadPoolExecutor(1) as pool, psycopg.connect(proxy.url, autocommit=True) as connection:
        asleep = pool.submit(connection.execute, "SELECT pg_sleep(3)")
        assert wait_for(lambda: proxy.counts.total() == 1, 2.5)
        assert proxy.lost(QUERY_CUT) == 0
        proxy.reset()
        assert isinstance(asleep.exception(10), psycopg.OperationalError)


def test_resets_strike_a_share_and_the_rest_continue(proxy: Proxy) -> None:
    connections = [psycopg.connect(proxy.url, autocommit=True) for _ in range(40)]
    struck = proxy.reset(0.5)
    gone = 0
    for connection in connections:
        try:
            connection.execute("SELECT 1")
        except psycopg.OperationalError:
            gone += 1
    assert gone == struck == proxy.counts[RESET]
    assert 0 < struck < 40
    for connection in connections:
        connection.close()
    assert wait_for(lambda: proxy.connections == 0, 10)


def test_a_reset_is_heard_as_one(proxy: Proxy) -> None:
    port = urlsplit(proxy.url).port
    with socket.create_connection(("127.0.0.1", port), timeout=5) as client:
        assert wait_for(lambda: proxy.connections == 1, 5)
        proxy.reset()
        with pytest.raises(ConnectionResetError):
            client.recv(1)


@pytest.mark.timing
def test_a_delay_is_for_both_ways_and_keeps_the_order(proxy: Proxy) -> None:
    with psycopg.connect(proxy.url, autocommit=True) as connection:

        def round_trip() -> float:
            return seconds(lambda: connection.execute("SELECT 1"))

        proxy.delay(0.1, 0.05)
        assert 0.2 <= median(round_trip) < 1
        with connection.pipeline():
            cursors = []
            for number in range(20):
                cursors.append(connection.execute("SELECT %s", (number,)))
                connection.pgconn.flush()
            found = [row[0] for cursor in cursors if (row := cursor.fetchone())]
        assert found == list(range(20))
        proxy.restore()
        assert median(round_trip) < 0.1


@pytest.mark.timing
def test_a_slow_way_takes_its_time(proxy: Proxy) -> None:
    with psycopg.connect(proxy.url, autocommit=True) as connection:
        proxy.slow(200_000)
        large = "SELECT repeat('x', 100000)"
        assert 0.5 <= median(lambda: seconds(lambda: connection.execute(large))) < 3


def test_slow_link_is_seen_and_nothing_is_late_after_the_fix(
    proxy: Proxy,
) -> None:
    with ThreadPoolExecutor(1) as pool, psycopg.connect(proxy.url, autocommit=True) as connection:
        assert proxy.held == 0
        proxy.slow(1_000)
        sent = pool.submit(connection.execute, "SELECT repeat('x', 100000)")
        assert wait_for(lambda: proxy.held == 1, 10)
        proxy.restore()
        sent.result(10)
        assert proxy.held == 0
        proxy.delay(0.01)
        assert seconds(lambda: connection.execute("SELECT 1")) < 30


def test_a_half_open_way_lets_requests_pass_and_holds_the_answers(url: str, proxy: Proxy) -> None:
    with ThreadPoolExecutor(1) as pool, psycopg.connect(proxy.url, autocommit=True) as connection:
        proxy.half_open(towards="server")
        sent = pool.submit(connection.execute, "INSERT INTO thing VALUES (1)")
        assert wait_for(lambda: things(url) == 1, 10)
        assert not sent.done()
        proxy.restore()
        sent.result(10)

        proxy.half_open(towards="client")
        sent = pool.submit(connection.execute, "INSERT INTO thing VALUES (2)")
        time.sleep(0.2)
        assert things(url) == 1
        proxy.restore()
        sent.result(10)
        assert things(url) == 2


def test_cut_traffic_arrives_after_the_fix(url: str, proxy: Proxy) -> None:
    with ThreadPoolExecutor(2) as pool, psycopg.connect(proxy.url, autocommit=True) as connection:
        proxy.cut()
        old = pool.submit(connection.execute, "INSERT INTO thing VALUES (1)")
        new = pool.submit(alone, proxy.url)
        time.sleep(0.2)
        assert things(url) == 0
        proxy.restore()
        old.result(10)
        new.result(10)
        assert things(url) == 2


def test_connections_that_are_forgotten_stay_silent_and_new_ones_do_not(
    url: str, proxy: Proxy
) -> None:
    with ThreadPoolExecutor(1) as pool, psycopg.connect(proxy.url, autocommit=True) as connection:
        proxy.forget()
        old = pool.submit(connection.execute, "INSERT INTO thing VALUES (1)")
        alone(proxy.url)
        proxy.restore()
        alone(proxy.url)
        assert not old.done()
        assert things(url) == 2
        proxy.reset()
        assert isinstance(old.exception(10), psycopg.OperationalError)


def test_a_server_that_is_not_there_is_a_reset() -> None:
    with (
        Proxy("postgresql://postgres@127.0.0.1:1/nothing") as proxy,
        pytest.raises(psycopg.OperationalError),
    ):
        psycopg.connect(proxy.url, connect_timeout=5)
