"""How an installation fares: totals to count on from, what is late, how the tables are kept."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from support.store import SECOND
from tenure._model.attempt import AttemptOutcome
from tenure._model.job import NewJob
from tenure._model.operation import Filter, NewOperation, OperationKind
from tenure._model.outcome import Succeeded
from tenure._model.schedule import Missed, NewSchedule, Policy, TickOutcome, TickReason, Timing
from tests.conformance.acts import BY, enqueue, running, settle
from tests.conformance.test_rollups import fold_all

if TYPE_CHECKING:
    from support.store import Database
    from tenure._model.stats import Totals

MINUTE = timedelta(minutes=1)


@pytest.fixture
async def db(db: Database) -> Database:
    """The clock stands at the beginning of a minute."""
    db.clock.now = db.clock.now.replace(second=0) + MINUTE
    return db


def completed(totals: Totals) -> int:
    return sum(each.outcomes[AttemptOutcome.COMPLETED] for each in (*totals.settled, *totals.open))


async def test_totals_continue_from_the_last_settled_ones(db: Database) -> None:
    """Shows R37."""
    begun = await db.run(db.store.stats.totals())
    assert (completed(begun), begun.counts_age) == (0, None)
    found, counted = begun, 0
    for _ in range(3):
        await settle(db, await running(db), Succeeded())
        db.clock.advance(2 * MINUTE)
        await fold_all(db)
        found = await db.run(db.store.stats.totals(found.settled_to))
        counted += sum(each.outcomes[AttemptOutcome.COMPLETED] for each in found.settled)
    assert counted + sum(each.outcomes[AttemptOutcome.COMPLETED] for each in found.open) == 3
    [one] = {(each.queue, each.task) for each in (*found.settled, *found.open)}
    assert all(one)
    assert found.counts_age is not None
    assert timedelta(0) < found.counts_age <= 2 * MINUTE


async def test_who_comes_later_begins_with_the_names_alone(db: Database) -> None:
    await settle(db, await running(db), Succeeded())
    db.clock.advance(2 * MINUTE)
    await fold_all(db)
    begun = await db.run(db.store.stats.totals())
    assert completed(begun) == 1
    again = await db.run(db.store.stats.totals(begun.settled_to))
    assert completed(again) == 0


async def test_nothing_is_late_where_there_is_nothing(db: Database) -> None:
    late = await db.run(db.store.overview.lateness())
    assert not any((late.lease, late.schedule, late.operation, late.items_left, late.ticks))
    assert (late.schedules.value, late.operations.value) == (0, 0)


async def test_unattended_lease_schedule_and_operation_are_late(
    db: Database,
) -> None:
    """Shows R37."""
    await running(db)
    await enqueue(db)
    hourly = NewSchedule(name="s", timing=Timing(every=3600 * SECOND), job=NewJob("t"))
    await db.run(db.store.schedules.create(hourly, BY))
    new = NewOperation(kind=OperationKind.CANCEL, filter=Filter(queue="q"), rate=1)
    operation = await db.run(db.store.operations.start(new, BY))
    db.clock.advance(2 * 3600 * SECOND)

    late = await db.run(db.store.overview.lateness())

    assert late.lease > 3600 * SECOND
    assert 3600 * SECOND <= late.schedule <= 2 * 3600 * SECOND
    assert late.schedules.value == 1
    assert (late.operations.value, late.items_left) == (1, operation.total)
    assert late.operation > 3600 * SECOND


async def test_ticks_of_the_last_hour_are_counted_by_result(db: Database) -> None:
    policy = Policy(missed=Missed.LATEST)
    often = NewSchedule(name="s", timing=Timing(every=600 * SECOND), job=NewJob("t"), policy=policy)
    await db.run(db.store.schedules.create(often, BY))
    db.clock.advance(1800 * SECOND)
    await db.run(db.store.ticks.fire())

    ticks = (await db.run(db.store.overview.lateness())).ticks

    counts = {(tick.outcome, tick.reason): tick.count for tick in ticks}
    assert sum(counts.values()) == 3
    assert counts[TickOutcome.SKIPPED, TickReason.MISSED] == 2


async def test_every_table_is_shown_with_its_partitions_and_a_transaction_pins_the_horizon(
    db: Database,
) -> None:
    await running(db)
    writer = await db.party("writer")
    async with writer.transaction() as open_one:
        await open_one.run(db.store.jobs.enqueue([NewJob("t")]))
        await enqueue(db)
        storage = await db.run(db.store.overview.storage())
    sizes = {table.name: table.bytes for table in storage.tables}
    assert {"job", "attempt", "job_archive", "rollup_minute"} <= sizes.keys()
    assert all(name.islower() and not name[-1].isdigit() for name in sizes)
    assert sizes["attempt"] > 0
    assert storage.horizon >= 1
    assert storage.oldest is not None
