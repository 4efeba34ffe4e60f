"""`async def` handlers on the event loop: which task and which context each of them has."""

import asyncio
from contextvars import ContextVar

from tenure import Tenure
from tests.worker.acts import end

HERE: ContextVar[str] = ContextVar("here", default="nobody")


async def test_handlers_that_do_not_wait_share_a_task_and_those_that_do_have_their_own(
    app: Tenure,
) -> None:
    quick: list[asyncio.Task[object] | None] = []
    slow: list[asyncio.Task[object] | None] = []

    @app.task
    async def at_once() -> None:
        quick.append(asyncio.current_task())

    @app.task
    async def waits() -> None:
        mine = asyncio.current_task()
        slow.append(mine)
        await asyncio.sleep(0)
        assert asyncio.current_task() is mine

    several = await app.aenqueue_many(at_once.bind() for _ in range(5))
    async with app.run(concurrency=5):
        for handle in several:
            await end(handle)
        for handle in await app.aenqueue_many(waits.bind() for _ in range(5)):
            await end(handle)

    assert len(set(quick)) < 5
    assert len(set(slow)) == 5


async def test_what_a_handler_sets_in_its_context_is_there_after_it_waited_and_not_for_the_next(
    app: Tenure,
) -> None:
    found: list[tuple[str, str]] = []

    @app.task
    async def sets(name: str, *, wait: bool) -> None:
        before = HERE.get()
        HERE.set(name)
        if wait:
            await asyncio.sleep(0.01)
        found.append((before, HERE.get()))

    calls = [sets.bind(f"{n}", wait=n % 2 == 0) for n in range(6)]
    handles = await app.aenqueue_many(calls)
    async with app.run(concurrency=2):
        for handle in handles:
            await end(handle)

    assert sorted(found) == [("nobody", f"{n}") for n in range(6)]


async def test_a_handler_that_cancels_its_own_task_takes_no_other_along(app: Tenure) -> None:
    """The cancel would arrive at the next wait in that task, which is another handler's."""

    @app.task
    async def cancels_itself() -> str:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        return "well"

    @app.task
    async def waits() -> str:
        await asyncio.sleep(0.01)
        return "well too"

    first, second = await app.aenqueue_many([cancels_itself.bind(), waits.bind()])
    async with app.run(concurrency=1):
        await end(first)
        await end(second)

    assert (first.result, second.result) == ("well", "well too")


async def test_timeouts_and_task_groups_of_asyncio_work_in_a_handler(app: Tenure) -> None:
    @app.task
    async def careful() -> str:
        try:
            async with asyncio.timeout(0.01):
                await asyncio.sleep(60)
        except TimeoutError:
            async with asyncio.TaskGroup() as group:
                reported = [
                    group.create_task(asyncio.sleep(0, word)) for word in ("late", "and well")
                ]
            return " ".join(task.result() for task in reported)
        return "in time"

    handles = await app.aenqueue_many(careful.bind() for _ in range(3))
    async with app.run(concurrency=3):
        for handle in handles:
            await end(handle)

    assert [handle.result for handle in handles] == ["late and well"] * 3
