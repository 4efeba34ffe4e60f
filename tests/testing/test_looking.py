"""Assertions about what was enqueued say, when they fail, what was enqueued instead."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
import pytest

from tenure.testing import (
    aassert_enqueued,
    aassert_not_enqueued,
    aenqueued,
    assert_enqueued,
    assert_not_enqueued,
    drain,
    enqueued,
)
from tests.testing import shop
from tests.testing.shop import Letter

if TYPE_CHECKING:
    from tenure import Tenure


def test_jobs_are_found_in_enqueue_order_in_any_state(app: Tenure) -> None:
    first = shop.post.enqueue(Letter("Ada"))
    drain(app)
    second = shop.post.enqueue(Letter("Bob"))
    shop.chain.enqueue(0)
    assert [job.id for job in enqueued(shop.post)] == [first.id, second.id]
    assert len(assert_enqueued(shop.post, count=2)) == 2


def test_job_has_the_options_of_its_enqueue(app: Tenure) -> None:
    handle = shop.post.using(key="k", priority=8, delay=60, queue="slow").enqueue(Letter("Ada"))
    values = {"key": "k", "priority": 8, "delay": 60, "queue": "slow"}
    [job] = assert_enqueued(shop.post, args={"letter": Letter("Ada")}, **values)  # type: ignore[arg-type]  # Of several kinds.
    assert job.id == handle.id
    for name, other in {"key": "x", "priority": 1, "delay": 5, "queue": "mail"}.items():
        with pytest.raises(AssertionError, match=f"{name}="):
            assert_enqueued(shop.post, **{name: other})  # type: ignore[arg-type]  # Of several kinds.
    assert_enqueued(shop.post, where=lambda job: job.args["letter"]["pages"] == 1)
    with pytest.raises(AssertionError, match="where=…"):
        assert_enqueued(shop.post, where=lambda _: False)


def test_a_failed_assertion_shows_what_was_enqueued_instead(app: Tenure) -> None:
    one = shop.post.using(key="k", delay=60).enqueue(Letter("Bob"))
    other = shop.chain.enqueue(0)

    with pytest.raises(AssertionError) as caught:
        assert_enqueued(shop.post, args={"letter": Letter("Ada")})

    assert str(caught.value) == (
        f"expected a job of {shop.post.name} with args={{'letter': Letter(to='Ada', pages=1)}}, "
        "found none; enqueued were:\n"
        f"  job {one.id}: {shop.post.name}(letter={{'to': 'Bob', 'pages': 1}}), queue mail, "
        "key 'k', delay 60 s, queued\n"
        f"  job {other.id}: {shop.chain.name}(rest=0), queue default, queued"
    )


def test_a_wrong_count_and_an_unwanted_job_fail_as_well(app: Tenure) -> None:
    with pytest.raises(AssertionError, match="found none; enqueued was nothing"):
        assert_enqueued(shop.chain)
    app.enqueue_many(shop.chain.bind(n) for n in range(20))
    with pytest.raises(AssertionError, match=r"expected 3 jobs of .*found 20; enqueued 20 \(20 "):
        assert_enqueued(shop.chain, count=3)
    with pytest.raises(AssertionError, match=r"expected no job of .*found 1;"):
        assert_not_enqueued(shop.chain, args={"rest": 7})
    assert_not_enqueued(shop.chain, args={"rest": 99})


def test_what_an_open_transaction_has_enqueued_is_seen_over_its_connection(
    app: Tenure, tenure_database: str
) -> None:
    with psycopg.connect(tenure_database) as connection:
        shop.chain.using(connection=connection).enqueue(0)
        assert_not_enqueued(shop.chain)
        assert_enqueued(shop.chain, connection=connection)
        assert len(enqueued(shop.chain, connection=connection)) == 1
        connection.rollback()
        assert_not_enqueued(shop.chain, connection=connection)


async def test_the_same_async(app: Tenure, tenure_database: str) -> None:
    await aassert_not_enqueued(shop.chain)
    async with await psycopg.AsyncConnection.connect(tenure_database) as connection:
        await shop.chain.using(connection=connection).aenqueue(0)
        assert len(await aenqueued(shop.chain, connection=connection)) == 1
        assert len(await aassert_enqueued(shop.chain, count=1, connection=connection)) == 1
        await aassert_not_enqueued(shop.post, connection=connection)
        await connection.rollback()
    assert await aenqueued(shop.chain) == []
    with pytest.raises(AssertionError, match="expected a job"):
        await aassert_enqueued(shop.chain)
    await app.aclose()
