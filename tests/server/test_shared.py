"""An answer that all share: asked for once, and anew when it is too old."""

from __future__ import annotations

import asyncio

import pytest

from tenure.errors import Unreachable
from tenure.server.cache import SingleFlightCache


class Asked:
    """Counts how often it is asked, and answers when it is let."""

    def __init__(self) -> None:
        self.times = 0
        self.let = asyncio.Event()

    async def __call__(self) -> int:
        self.times += 1
        await self.let.wait()
        return self.times


async def test_who_comes_while_one_is_asked_for_has_the_same_answer() -> None:
    asked = Asked()
    shared = SingleFlightCache(asked, fresh=60)
    both = [asyncio.create_task(shared.get()) for _ in range(2)]
    await asyncio.sleep(0)
    asked.let.set()

    assert await asyncio.gather(*both) == [1, 1]
    assert asked.times == 1


async def test_what_is_too_old_is_asked_for_anew() -> None:
    asked = Asked()
    asked.let.set()
    shared = SingleFlightCache(asked, fresh=0)

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


async def test_what_is_dear_is_asked_for_less_often() -> None:
    """By the least of the last three: an answer that was slow once does not count."""
    asked = 0

    async def ask() -> int:
        nonlocal asked
        asked += 1
        await asyncio.sleep(0.02)
        return asked

    shared = SingleFlightCache(ask, fresh=0, oldest=60)
    assert [await shared.get() for _ in range(6)] == [1, 2, 3, 3, 3, 3]
