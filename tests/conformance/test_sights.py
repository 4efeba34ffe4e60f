"""Reads for operators: leases, throughput of queues, recent ticks, the audit."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from support.store import SECOND, A, B
from tenure._model.audit import By
from tenure._model.job import NewJob, State
from tenure._model.outcome import Failed, Succeeded
from tenure._model.overview import HorizonHolderKind
from tenure._model.schedule import NewSchedule, TickOutcome, Timing
from tests.conformance.acts import BY, ERROR, claim, enqueue, running, settle
from tests.conformance.test_rollups import fold_all

if TYPE_CHECKING:
    from support.store import Database
    from tenure._model.audit import AuditPage

MINUTE = timedelta(minutes=1)


async def test_leases_are_listed_by_remaining_time(
    db: Database,
) -> None:
    """Shows R2."""
    for queue in ("q", "p", "q"):
        await enqueue(db, queue=queue)
    await claim(db, worker=A)
    db.clock.advance(5 * SECOND)
    await claim(db, worker=B, queues=("p",))
    await claim(db, worker=B)

    first, *others = await db.run(db.store.inspection.leases())
    assert (first.worker, first.queue, first.attempt) == (A, "q", 1)
    assert (first.length, first.remaining) == (30 * SECOND, 25 * SECOND)
    assert {one.worker for one in others} == {B}
    assert len(await db.run(db.store.inspection.leases(worker=B))) == 2
    [of_queue] = await db.run(db.store.inspection.leases(queue="p"))
    assert (of_queue.queue, of_queue.remaining) == ("p", 30 * SECOND)
    assert len(await db.run(db.store.inspection.leases(count=1))) == 1

    db.clock.advance(26 * SECOND)
    over, *_ = await db.run(db.store.inspection.leases())
    assert over.remaining == -SECOND


async def test_throughput_of_queues_is_shown_by_minute(db: Database) -> None:
    db.clock.now = db.clock.now.replace(second=0) + MINUTE
    await fold_all(db)
    await settle(db, await running(db), Succeeded())
    await settle(db, await running(db, max_attempts=1), Failed(ERROR))
    db.clock.advance(MINUTE)
    await settle(db, await running(db), Succeeded())
    db.clock.advance(2 * MINUTE)
    await fold_all(db)

    found = await db.run(db.store.inspection.throughput(["q", "nobody"], minutes=3))
    assert found.until - found.since == 3 * MINUTE
    assert list(found.queues["q"].completed) == [1, 1, 0]
    assert list(found.queues["q"].failed) == [1, 0, 0]
    assert sum(found.queues["nobody"].completed) == 0


async def test_schedules_are_shown_with_their_last_ticks_and_job_results(
    db: Database,
) -> None:
    """Shows R28."""
    new = NewSchedule(name="s", timing=Timing(every=MINUTE), job=NewJob("task", queue="q"))
    await db.run(db.store.schedules.create(new, BY))
    assert (await db.run(db.store.inspection.recent_runs(["s", "none"])))["s"].ticks == []
    for _ in range(3):
        db.clock.advance(MINUTE)
        await db.run(db.store.ticks.fire())

    found = await db.run(db.store.inspection.recent_runs(["s", "none"], count=2))
    assert [tick.outcome for tick in found["s"].ticks] == [TickOutcome.FIRED] * 2
    assert found["s"].ticks[0].fire_at > found["s"].ticks[1].fire_at
    assert (found["s"].state, found["none"].state) == (State.QUEUED, None)


@pytest.fixture
async def audited(db: Database) -> Database:
    """Five changes: two by ada, two by bert, and a job that was enqueued."""
    ada, bert = By("token:1:ada", "page", "why"), By("bert", "cli")
    await db.run(db.store.queues.pause("mail", ada))
    await db.run(db.store.queues.resume("mail", bert))
    await db.run(db.store.queues.limit("bulk", 5, ada))
    await db.run(db.store.settings.set("lease", 60, bert))
    await db.run(db.store.audit.record(By("robot", "http"), "enqueue", ["job:1"]))
    return db


async def search(db: Database, **given: object) -> AuditPage:
    """A page of the audit."""
    return await db.run(db.store.audit.search(**given))  # type: ignore[arg-type] # as asked


@pytest.mark.parametrize(
    ("given", "actions"),
    [
        ({}, ["enqueue", "setting.set", "queue.limit", "queue.resume", "queue.pause"]),
        ({"enqueued": False}, ["setting.set", "queue.limit", "queue.resume", "queue.pause"]),
        ({"actor": "ada"}, ["queue.limit", "queue.pause"]),
        ({"source": "cli"}, ["setting.set", "queue.resume"]),
        ({"action": "queue"}, ["queue.limit", "queue.resume", "queue.pause"]),
        ({"action": "queue.pause"}, ["queue.pause"]),
        ({"action": "que"}, []),
        ({"target": "queue:mail"}, ["queue.resume", "queue.pause"]),
        ({"target": "queue:mail", "actor": "bert"}, ["queue.resume"]),
        ({"target": "job:1", "enqueued": False}, []),
        ({"target": "queue:mail", "source": "page", "action": "queue"}, ["queue.pause"]),
    ],
)
async def test_the_audit_is_found_by_any_of_it(
    audited: Database, given: dict[str, object], actions: list[str]
) -> None:
    found = await search(audited, **given)
    assert [row.action for row in found.rows] == actions
    assert found.next is None


@pytest.mark.parametrize("target", [None, "queue:mail"])
async def test_the_audit_is_gone_through_page_by_page(
    audited: Database, target: str | None
) -> None:
    whole = await search(audited, target=target)
    seen, before = [], None
    while True:
        page = await search(audited, target=target, count=1, before=before)
        seen += [row.id for row in page.rows]
        if page.next is None:
            break
        before = page.next
    assert seen == [row.id for row in whole.rows]


async def test_an_empty_audit_has_one_empty_page(db: Database) -> None:
    assert (await search(db)).rows == []


async def test_the_system_says_what_it_stands_on(db: Database) -> None:
    found = await db.run(db.store.inspection.system())
    assert found.version
    assert [history.name for history in found.histories] == ["attempt", "job_archive"]
    assert all(one.first <= one.last and one.days > 1 for one in found.histories)
    assert (found.durability.standby_names, found.durability.standbys) == ("", 0)


async def test_session_that_keeps_dead_rows_is_named(db: Database) -> None:
    await enqueue(db)
    reporter = await db.caller("reporter")
    async with reporter.transaction() as tx:
        await tx.run(db.store.jobs.enqueue([NewJob("task", queue="q")]))
        holders = (await db.run(db.store.inspection.system())).holders
    [holder] = [one for one in holders if one.application == "reporter"]
    assert (holder.kind, holder.state) == (HorizonHolderKind.SESSION, "idle in transaction")
    assert holder.age is not None
