"""The scheduler, one pass at a time: it declares, fires, and knows when to look again."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from support.race_helpers import BY
from tenure._model.job import NewJob
from tenure._model.schedule import NewSchedule, Timing
from tenure._services.scheduler import Scheduler
from tenure.errors import InvalidValue, Unreachable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.services.bench import Bench

NOON = datetime(2027, 5, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
UNVERSIONED = (
    "scheduler: a: kept, declared by a version of shop, and this program has none; "
    "set Tenure(version=…)"
)


@pytest.fixture(autouse=True)
async def noon(bench: Bench) -> None:
    """It is noon by the database's clock."""
    bench.db.clock.now = NOON


def every(seconds: float, name: str = "s", queue: str = "q") -> NewSchedule:
    return NewSchedule(name=name, timing=Timing(every=seconds * SECOND), job=NewJob("t", queue))


def scheduler(
    bench: Bench, *schedules: NewSchedule, version: Sequence[int] = (), program: str = "shop"
) -> Scheduler:
    return Scheduler(
        bench.db.store,
        bench.link("scheduler"),
        program=program,
        version=version,
        schedules=schedules,
        defaults=bench.defaults,
    )


async def names(bench: Bench) -> dict[str, str]:
    """The schedules there are, and how they fare."""
    return {row.name: row.state for row in await bench.db.run(bench.db.store.schedules.list())}


async def jobs(bench: Bench) -> int:
    return len(await bench.db.fetch("SELECT id FROM tenure.job"))


async def test_what_the_code_says_is_declared_once_and_then_fired_tick_by_tick(
    bench: Bench,
) -> None:
    """Shows R24. Shows R26."""
    one = scheduler(bench, every(60))
    assert await one.tick() == 0
    assert await names(bench) == {"s": "active"}
    bench.advance(60)
    assert await one.tick() == 1
    assert await one.tick() == 0
    bench.advance(150)
    assert await one.tick() == 2
    ticks = await bench.db.run(bench.db.store.ticks.list("s"))
    assert [tick.fire_at for tick in ticks] == [NOON + n * 60 * SECOND for n in (3, 2, 1)]
    # Two were missed, and the latest stands for both.
    assert await jobs(bench) == 2


async def test_it_sleeps_until_the_next_tick_and_not_longer_than_the_poll(bench: Bench) -> None:
    """Shows R27."""
    one = scheduler(bench, every(60))
    await one.tick()
    assert 0.8 <= one._next_delay() <= 1.2
    bench.advance(59.75)
    await one.tick()
    assert all(0.25 <= one._next_delay() <= 0.256 for _ in range(50))
    # However long ago it was asked: the instant stays.
    bench.boot.advance(0.2)
    assert all(0.05 <= one._next_delay() <= 0.056 for _ in range(50))
    bench.boot.advance(0.2)
    assert all(0 < one._next_delay() <= 0.006 for _ in range(50))


async def test_many_schedulers_do_not_all_strike_at_once(bench: Bench) -> None:
    one = scheduler(bench, every(60))
    bench.advance(59.75)
    await one.tick()
    assert len({one._next_delay() for _ in range(100)}) > 90


async def test_a_slow_answer_makes_it_look_too_early_and_never_too_late(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shows R27."""
    one = scheduler(bench, every(60))
    await one.tick()
    bench.advance(59.5)
    run = bench.links[-1].run

    async def slow(op: Any) -> Any:
        answer = await run(op)
        bench.boot.advance(0.4)
        return answer

    monkeypatch.setattr(bench.links[-1], "run", slow)
    await one.tick()
    assert one._next_delay() <= 0.106


async def test_without_a_schedule_it_looks_once_per_poll(bench: Bench) -> None:
    one = scheduler(bench)
    assert await one.tick() == 0
    assert 0.8 <= one._next_delay() <= 1.2


async def test_a_change_and_a_sign_of_life_make_it_look_at_once_and_a_queue_does_not(
    bench: Bench,
) -> None:
    one = scheduler(bench)
    one.wake("mail")
    assert not one._nudged.is_set()
    one.wake("@schedules")
    assert one._nudged.is_set()
    one._nudged.clear()
    one.wake("")
    assert one._nudged.is_set()


async def test_a_claimer_of_every_queue_does_not_take_a_change_of_schedules_for_one(
    bench: Bench,
) -> None:
    claimer = bench.claimer(bench.dispatcher(), "*")
    claimer.wake("@schedules")
    assert not claimer._nudged.is_set()
    claimer.wake("mail")
    assert claimer._nudged.is_set()


async def test_what_another_fires_is_left_to_it_and_looked_at_again_soon(bench: Bench) -> None:
    """Until that one is gone, and what it did is undone: and others that fall due meanwhile are
    not late. Shows R26. Shows R27."""
    one = scheduler(bench, every(60))
    await one.tick()
    bench.advance(60)
    other = await bench.db.caller("other")
    waits = []
    async with other.transaction():
        await other.connection.execute("SELECT FROM tenure.schedule FOR UPDATE")
        for _ in range(10):
            assert await one.tick() == 0
            waits.append(one._next_delay())
    assert 0.01 <= waits[0] <= 0.016
    assert all(0.1 <= wait <= 0.106 for wait in waits[-2:])
    assert await one.tick() == 1
    assert await one.tick() == 0
    assert one._next_delay() >= 0.8


@pytest.mark.parametrize("woken", [True, False])
async def test_what_was_committed_late_is_found_with_the_wakeup_and_else_by_a_sweep(
    bench: Bench, woken: bool
) -> None:
    """Its time lies below where the last pass looked. Shows R26."""
    one = scheduler(bench)
    bench.advance(10)
    await one.tick()
    await bench.db.run(bench.db.store.schedules.create(every(60), BY))
    await bench.db.fetch(f"UPDATE tenure.schedule SET next_at = '{NOON}'")
    assert await one.tick() == 0
    if woken:
        one.wake("@schedules")
    else:
        bench.advance(5)
    assert await one.tick() == 1


async def test_it_survives_a_database_that_is_away_and_declares_when_it_is_back(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    """Shows R26."""
    one = scheduler(bench, every(60))
    bench.links[-1].cut = True
    for _ in range(3):
        with pytest.raises(Unreachable):
            await one.tick()
    assert await one._attempt() == 0
    assert one._next_delay() >= 0.8
    bench.links[-1].cut = False
    assert await one._attempt() == 0
    assert await names(bench) == {"s": "active"}
    bench.advance(60)
    bench.links[-1].cut = True
    assert await one._attempt() == 0
    bench.advance(630)
    bench.links[-1].cut = False
    assert await one._attempt() == 11
    assert await jobs(bench) == 1


async def test_changes_are_reported(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "tenure"):
        await scheduler(bench, every(60, "a"), every(60, "b"), version=(1,)).tick()
        await scheduler(bench, every(60, "a"), every(60, "b"), version=(1,)).tick()
        await scheduler(bench, every(30, "a"), version=(2,)).tick()
        await scheduler(bench, every(60, "a"), every(60, "b"), version=(1, 5)).tick()
        await scheduler(bench, every(60, "a")).tick()
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("INFO", "scheduler: a, b: created by shop"),
        ("INFO", "scheduler: a: changed by shop"),
        ("INFO", "scheduler: b: retired by shop"),
        ("INFO", "scheduler: a, b: kept, declared by a newer version of shop"),
        ("WARNING", UNVERSIONED),
    ]
    assert await names(bench) == {"a": "active", "b": "retired"}


async def test_failed_declaration_does_not_stop_other_schedules(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    """Shows R26."""
    await bench.db.run(bench.db.store.schedules.create(every(60), BY))
    bench.advance(60)
    broken = scheduler(bench, every(60, "no name"))
    assert await broken.tick() == 1
    bench.advance(60)
    assert await broken.tick() == 1
    [output] = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert output.startswith(
        "scheduler: cannot declare the schedules of shop: schedule name must be "
    )


async def test_a_schedule_that_cannot_be_read_here_keeps_no_other_from_being_fired(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its zone is not known to this process. It is told once, left to those that know it, and
    read again when schedules change. Shows R26. Shows R27."""
    monkeypatch.setattr("tenure._services.scheduler._BATCH", 2)
    timing = Timing(cron="* * * * *", zone="Europe/Berlin")
    strange = [NewSchedule(name=f"a{n}", timing=timing, job=NewJob("t", "q")) for n in range(5)]
    here, there = scheduler(bench, *strange, every(60, "s")), scheduler(bench, program="other")
    assert await here.tick() == 0
    bench.advance(60)

    with monkeypatch.context() as ignorant:
        ignorant.setattr("tenure._rules.time_zones.zone_named", unknown_zone)
        while await here.tick():
            pass
        assert await jobs(bench) == 1
        assert here._next_delay() >= 0.8
        here.wake("@schedules")
        while await here.tick():
            pass
    output = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert len(output) == 5
    assert output[0].startswith(
        "scheduler: cannot read schedule a0, leaving it to other workers: time zone"
    )
    assert "Europe/Berlin" in output[0]
    assert "tzdata" in output[0]

    while await there.tick():
        pass
    assert await jobs(bench) == 6


def unknown_zone(name: str) -> None:
    raise InvalidValue(f"time zone {name!r} does not exist")


async def test_a_full_batch_is_followed_at_once_by_the_next(bench: Bench) -> None:
    """Shows R27."""
    one = scheduler(bench, *(every(60, f"s{n:03}") for n in range(150)))
    await one.tick()
    bench.advance(60)
    assert [await one.tick() for _ in range(3)] == [100, 50, 0]
    assert await jobs(bench) == 150
