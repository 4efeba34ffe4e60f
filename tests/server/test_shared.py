"""A shared answer: fetched once, and again when it is too old."""

from __future__ import annotations

import asyncio

import pytest

from tenure.errors import Unreachable
from tenure.server.cache import SingleFlightCache


class Requests:
    """Counts how often it is asked, and answers when it is let."""

    def __init__(self) -> None:
        self.times = 0
        self.let = asyncio.Event()

    async def __call__(self) -> int:
        self.times += 1
        await self.let.wait()
        return self.times


async def test_concurrent_callers_share_one_answer() -> None:
    request = Requests()
    shared = SingleFlightCache(request, fresh=60)
    both = [asyncio.create_task(shared.get()) for _ in range(2)]
    await asyncio.sleep(0)
    request.let.set()

    assert await asyncio.gather(*both) == [1, 1]
    assert request.times == 1


async def test_stale_value_is_fetched_again() -> None:
    request = Requests()
    request.let.set()
    shared = SingleFlightCache(request, fresh=0)

    assert [await shared.get(), await shared.get()] == [1, 2]


async def test_a_failure_is_nobodys_answer_but_the_askers() -> None:
    answers = iter([Unreachable("away"), None])

    async def ask() -> str:
        if error := next(answers):
            raise error
        return "there"

    shared = SingleFlightCache(ask, fresh=60)
    with pytest.raises(Unreachable):
        await shared.get()

    assert await shared.get() == "there"


async def test_expensive_queries_run_less_often() -> None:
    """By the least of the last three: an answer that was slow once does not count."""
    request = 0

    async def ask() -> int:
        nonlocal request
        request += 1
        await asyncio.sleep(0.02)
        return request

    shared = SingleFlightCache(ask, fresh=0, oldest=60)
    assert [await shared.get() for _ in range(6)] == [1, 2, 3, 3, 3, 3]
