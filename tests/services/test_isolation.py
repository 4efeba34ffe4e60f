"""A suspect that takes workers down runs alone, and busy processes make room for it. Shows R7."""

from __future__ import annotations

from typing import TYPE_CHECKING

from support.store import A
from tenure._model.outcome import Succeeded
from tenure._runtime.claimer import Claimer

if TYPE_CHECKING:
    from tenure._model.ids import JobId
    from tenure._runtime.dispatcher import Dispatcher
    from tests.services.bench import Bench


async def suspect(bench: Bench, worker_losses: int) -> JobId:
    """A due job that has lost as many workers."""
    [job_id] = await bench.enqueue()
    await bench.db.fetch(
        "UPDATE tenure.job SET suspect = true, returned = true, worker_losses = $1, deaths = $1"
        " WHERE id = $2",
        worker_losses,
        job_id,
    )
    return job_id


def claimer(bench: Bench, dispatcher: Dispatcher, *, has_processes: bool) -> Claimer:
    return Claimer(
        bench.db.store,
        bench.link("claimer"),
        queues=["default"],
        worker=A,
        dispatcher=dispatcher,
        held_leases=bench.held_leases,
        settings=bench.settings,
        defaults=bench.defaults,
        events=bench.events,
        has_processes=has_processes,
    )


def held(bench: Bench) -> list[JobId]:
    return sorted(each.job.id for each in bench.held_leases)


async def test_next_to_others_only_a_suspect_that_its_own_process_contains(bench: Bench) -> None:
    bench.task()
    dispatcher = bench.dispatcher()
    [other] = [each.job.id for each in await bench.start(dispatcher)]
    contained, dangerous = await suspect(bench, 2), await suspect(bench, 3)
    await claimer(bench, dispatcher, has_processes=True).tick()

    assert held(bench) == [other, contained]
    assert dangerous not in held(bench)


async def test_without_processes_no_suspect_runs_next_to_others(bench: Bench) -> None:
    bench.task()
    dispatcher = bench.dispatcher()
    [other] = [each.job.id for each in await bench.start(dispatcher)]
    await suspect(bench, 1)
    await claimer(bench, dispatcher, has_processes=False).tick()

    assert held(bench) == [other]


async def test_while_a_dangerous_suspect_runs_nothing_else_is_claimed(bench: Bench) -> None:
    bench.task()
    job_id = await suspect(bench, 3)
    claims = claimer(bench, bench.dispatcher(), has_processes=True)
    await claims.tick()
    await bench.enqueue(5)
    assert await claims.tick() == 0
    assert held(bench) == [job_id]

    bench.process_way.started[0].end(Succeeded())
    await bench.settler.tick()
    await claims.tick()
    assert len(bench.held_leases) == 5


async def test_a_process_that_is_never_free_makes_room_for_one(bench: Bench) -> None:
    """For up to a lease; then work continues for as long."""
    bench.task()
    dispatcher = bench.dispatcher()
    claims = claimer(bench, dispatcher, has_processes=True)
    link = bench.link("claimer 2")
    await bench.start(dispatcher)
    job_id = await suspect(bench, 3)
    await claims.isolation.check_for_suspects(link)
    await bench.enqueue()
    await claims.tick()
    assert len(bench.held_leases) == 2

    bench.boot.advance(31)
    await claims.isolation.check_for_suspects(link)
    await bench.enqueue()
    assert await claims.tick() == 0
    for running in bench.loop_way.started:
        running.end(Succeeded())
    await bench.settler.tick()
    await claims.tick()
    assert held(bench) == [job_id]


async def test_no_room_is_made_where_no_suspect_waits(bench: Bench) -> None:
    bench.task()
    dispatcher = bench.dispatcher()
    claims = claimer(bench, dispatcher, has_processes=True)
    await bench.start(dispatcher)
    await suspect(bench, 2)
    bench.boot.advance(31)
    await claims.isolation.check_for_suspects(bench.link("claimer 2"))
    await bench.enqueue()
    await claims.tick()

    assert len(bench.held_leases) == 2
