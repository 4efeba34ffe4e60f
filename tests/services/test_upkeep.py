"""Rescuing, presence, pruning, folding: what a worker does beside its jobs."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import UUID

import psycopg
import pytest

from support.race_helpers import BY, claim, ended, enqueued, held, state
from support.store import SECOND, A, B
from tenure._model.ids import WorkerId
from tenure._model.job import State
from tenure._model.worker import NewWorker, WorkerState
from tenure._runtime.heartbeat import Heartbeat
from tenure._services.pruner import Pruner
from tenure._services.rescuer import Rescuer
from tenure._services.rollup import RollupService
from tenure.config import Backoff
from tenure.errors import Unreachable

if TYPE_CHECKING:
    from tests.services.bench import Bench

ME = NewWorker(A, "me", "host", 1, "1.0", ["default"], 10)


def rescuer(bench: Bench) -> Rescuer:
    return Rescuer(bench.db.store, bench.link("rescuer"), defaults=bench.defaults)


async def test_any_worker_rescues_an_expired_lease(bench: Bench) -> None:
    """Shows R7."""
    [lease] = await held(bench.db)
    sweeper = rescuer(bench)
    await sweeper.tick()
    assert await state(bench.db, lease.job_id) is State.RUNNING

    bench.advance(30)
    assert await sweeper.tick() == 0
    job = await bench.get(lease.job_id)
    assert (job.state, job.deaths, job.attempt) == (State.QUEUED, 1, 0)


async def test_a_process_never_rescues_what_it_still_holds(bench: Bench) -> None:
    """It has to stop the handler and give the job back itself, uncounted; another process may
    rescue it. Shows R7."""
    bench.task()
    [mine] = await bench.start(bench.dispatcher())
    link = bench.link("rescuer")
    sweeper = Rescuer(bench.db.store, link, defaults=bench.defaults, held_leases=bench.held_leases)
    bench.advance(31)
    await sweeper.tick()
    assert await state(bench.db, mine.job.id) is State.RUNNING

    bench.held_leases.drop(mine)
    await sweeper.tick()
    assert await state(bench.db, mine.job.id) is State.QUEUED


async def test_a_sweep_that_failed_is_made_good_a_third_of_a_lease_later(bench: Bench) -> None:
    """Holders come first: they could not reach the store either, and give back what they had to
    stop. Shows R7."""
    [lease] = await held(bench.db)
    sweeper = rescuer(bench)
    link = bench.links[-1]
    bench.advance(31)
    link.cut = True
    with pytest.raises(Unreachable):
        await sweeper.tick()
    link.cut = False
    bench.advance(9)
    assert await sweeper.tick() == 0
    assert await state(bench.db, lease.job_id) is State.RUNNING

    bench.advance(2)
    await sweeper.tick()
    assert await state(bench.db, lease.job_id) is State.QUEUED


async def test_what_lies_below_the_floor_is_found_once_per_lease(bench: Bench) -> None:
    """Its row was locked when the floor passed. Shows R7."""
    [lease] = await held(bench.db)
    sweeper = rescuer(bench)
    await sweeper.tick()
    operator = await bench.db.caller("operator")
    async with operator.transaction():
        await operator.connection.execute("SELECT FROM tenure.job FOR UPDATE")
        bench.advance(30)
        sweeper._from_zero_at = bench.boot.now + 30
        bench.db.clock.advance(60 * SECOND)
        await sweeper.tick()
    await sweeper.tick()
    assert await state(bench.db, lease.job_id) is State.RUNNING

    bench.advance(30)
    await sweeper.tick()
    assert await state(bench.db, lease.job_id) is State.QUEUED


async def test_the_floor_lags_behind_the_sweep(bench: Bench) -> None:
    """What expired a moment before it, and was committed after, is still above."""
    sweeper = rescuer(bench)
    await sweeper.tick()

    assert sweeper._floor == bench.db.clock.now - 2 * SECOND
    assert sweeper._from_zero_at == bench.boot.now + 30


async def test_a_full_sweep_is_followed_by_another_at_once(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenure._services.rescuer._BATCH", 2)
    await held(bench.db, 3)
    sweeper = rescuer(bench)
    bench.advance(30)

    assert [await sweeper.tick() for _ in range(2)] == [2, 0]
    [row] = await bench.db.fetch("SELECT count(*) AS n FROM tenure.job WHERE state = 'running'")
    assert row["n"] == 0


async def test_holder_of_a_long_expired_lease_is_named_by_pid(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    [lease] = await held(bench.db)
    sweeper = rescuer(bench)
    operator = await bench.db.caller("a stuck handler")
    async with operator.transaction():
        await operator.connection.execute("SELECT FROM tenure.job FOR UPDATE")
        bench.advance(90)
        await sweeper.tick()
        pid = operator.connection.info.backend_pid

    assert f"job {lease.job_id}: lease expired, but its row is locked" in caplog.text
    assert f"pid {pid} (a stuck handler)" in caplog.text


class Drains:
    """Counts how often a worker was asked to drain."""

    def __init__(self) -> None:
        self.requested = 0

    def __call__(self) -> None:
        self.requested += 1


def heartbeat(bench: Bench, on_drain: Drains | None = None) -> Heartbeat:
    return Heartbeat(
        bench.db.store,
        bench.link("presence"),
        me=ME,
        held_leases=bench.held_leases,
        watchdog=bench.watchdog(),
        settings=bench.settings,
        on_drain=on_drain or Drains(),
        defaults=bench.defaults,
    )


async def test_a_worker_registers_with_its_first_beat_and_says_how_it_fares(bench: Bench) -> None:
    bench.task()
    await bench.start(bench.dispatcher(slots=1), 2)
    bench.settings.unknown_tasks["other"] = None
    voice = heartbeat(bench)
    voice._watchdog.blocked = {"seconds": 2.0, "stack": "here"}
    await voice.tick()

    [worker] = await bench.db.run(bench.db.store.workers.list())
    assert (worker.id, worker.state, worker.slots, worker.running) == (A, WorkerState.ACTIVE, 10, 1)
    assert worker.meta.pop("memory") > 1_000_000
    assert worker.meta == {
        "blocked": {"seconds": 2.0, "stack": "here"},
        "unknown_tasks": ["other"],
    }


async def test_a_worker_that_was_forgotten_registers_again(bench: Bench) -> None:
    voice = heartbeat(bench)
    await voice.tick()
    await bench.db.fetch("DELETE FROM tenure.worker")
    bench.advance(5)
    await voice.tick()

    [worker] = await bench.db.run(bench.db.store.workers.list())
    assert worker.last_heartbeat_at == bench.db.clock.now


async def test_drain_request_reaches_the_worker_with_a_heartbeat(bench: Bench) -> None:
    """As long as it does not."""
    drains = Drains()
    voice = heartbeat(bench, drains)
    await voice.tick()
    await bench.db.run(bench.db.store.workers.drain(A, BY))
    await voice.tick()
    assert drains.requested == 1

    voice.state = WorkerState.DRAINING
    await voice.tick()
    assert drains.requested == 1
    [worker] = await bench.db.run(bench.db.store.workers.list())
    assert worker.state is WorkerState.DRAINING


async def test_settings_are_looked_at_now_and_then(bench: Bench) -> None:
    """With the first beat and every sixth after. Shows R38."""
    voice = heartbeat(bench)
    await voice.tick()
    assert bench.settings.backoff == Backoff()
    await bench.db.run(bench.db.store.settings.set("backoff_base", 5, BY))
    for _ in range(5):
        await voice.tick()
    assert bench.settings.backoff == Backoff()

    await voice.tick()
    assert bench.settings.backoff == Backoff(base=5 * SECOND)


async def test_those_that_serve_the_same_queues_and_live_are_counted(bench: Bench) -> None:
    """They share the scans."""
    others = [
        (["default"], 0, False),
        (["default"], 60, False),
        (["other"], 0, False),
        (["default"], 0, True),
    ]
    for number, (queues, age, gone) in enumerate(others, start=100):
        worker = NewWorker(WorkerId(UUID(int=number)), "w", "h", 1, "1", queues, 1)
        await bench.db.run(bench.db.store.workers.register(worker))
        if gone:
            await bench.db.run(
                bench.db.store.workers.heartbeat(worker.id, state=WorkerState.OFFLINE, running=0)
            )
        await bench.db.fetch(
            "UPDATE tenure.worker "
            "SET last_heartbeat_at = last_heartbeat_at - make_interval(secs => $1) WHERE id = $2",
            age,
            worker.id,
        )
    await heartbeat(bench).tick()

    assert bench.settings.peer_count == 2


async def test_the_last_beat_says_that_the_worker_is_gone(bench: Bench) -> None:
    voice = heartbeat(bench)
    await voice.tick()
    await voice.sign_off()

    [worker] = await bench.db.run(bench.db.store.workers.list())
    assert worker.state is WorkerState.OFFLINE


async def test_one_pass_keeps_partitions_ahead_and_then_the_connection_is_closed(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.db.clock.advance(timedelta(days=5))
    pruner = Pruner(bench.db.store, bench.link("pruner"))
    with caplog.at_level(logging.INFO, "tenure"):
        await pruner.tick()

    assert "partitions created or dropped" in caplog.text
    open_ = await bench.db.fetch(
        "SELECT FROM pg_stat_activity WHERE application_name = 'pruner' "
        "AND datname = current_database()"
    )
    assert open_ == []


async def test_a_role_that_owns_no_tables_leaves_upkeep_to_the_owner(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    """It says so, without an error."""
    bench.db.clock.advance(timedelta(days=5))
    name = f"plain_{bench.db.url.rpartition('_')[2]}"
    await bench.db.fetch(f"CREATE ROLE {name} LOGIN")
    await bench.db.fetch(f"GRANT USAGE ON SCHEMA tenure TO {name}")
    await bench.db.fetch(f"GRANT ALL ON ALL TABLES IN SCHEMA tenure TO {name}")
    link = bench.link("pruner")
    link._url = psycopg.conninfo.make_conninfo(link._url, user=name)
    try:
        with caplog.at_level(logging.INFO, "tenure"):
            assert await Pruner(bench.db.store, link).tick() == 0
    finally:
        await bench.db.fetch(f"DROP OWNED BY {name}")
        await bench.db.fetch(f"DROP ROLE {name}")

    assert "run tenure db maintain as the owner" in caplog.text


async def test_an_expired_lease_of_another_worker_is_claimed_after_the_rescue(bench: Bench) -> None:
    """Before fresh work of its priority. Shows R7."""
    [lease] = await held(bench.db)
    await enqueued(bench.db)
    bench.advance(30)
    await rescuer(bench).tick()
    claims = await bench.db.run(claim(bench.db.store, worker=B))

    [claimed] = claims.jobs
    assert (claimed.job.id, claimed.returned) == (lease.job_id, True)
    assert claimed.lease.token > lease.token


async def test_one_pass_folds_what_is_closed_and_then_the_connection_is_closed(
    bench: Bench,
) -> None:
    [lease] = await held(bench.db)
    await bench.db.run(bench.db.store.settlement.settle([ended(lease)]))
    bench.db.clock.advance(timedelta(minutes=2))
    folder = RollupService(bench.db.store, bench.link("folder"))
    assert await folder.tick() == 0, "it begins"
    assert await folder.tick() == 0, "all of it, so that it rests"

    found = await bench.db.run(bench.db.store.stats.over_time(step=timedelta(minutes=1)))
    assert found.whole.run.count == 1
    open_ = await bench.db.fetch(
        "SELECT FROM pg_stat_activity WHERE application_name = 'folder' "
        "AND datname = current_database()"
    )
    assert open_ == []


async def test_a_long_backlog_is_folded_a_bounded_stretch_at_a_time(bench: Bench) -> None:
    # So soon after a minute's end that minute is not folded yet.
    bench.db.clock.now = bench.db.clock.now.replace(second=5) + timedelta(minutes=1)
    for _ in range(70):
        [lease] = await held(bench.db)
        await bench.db.run(bench.db.store.settlement.settle([ended(lease)]))
        bench.db.clock.advance(timedelta(minutes=1))
    folder = RollupService(bench.db.store, bench.link("folder"))
    await folder.tick()
    assert 60 <= await folder.tick() <= 61
    while await folder.tick():
        pass
    started = bench.db.store.stats.over_time(
        since=bench.db.clock.now - timedelta(hours=2), step=timedelta(minutes=1)
    )
    assert (await bench.db.run(started)).whole.run.count == 69
