"""Audit: who changed what, from where and why, in the transaction of the change."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import pytest

from support.store import SECOND, A
from tenure._model.audit import By
from tenure._model.edit import JobChanges
from tenure._model.ids import JobId, WorkerId
from tenure._model.job import State
from tenure._model.operation import Changes
from tenure._model.worker import NewWorker
from tenure._rules.sealing import NOT_SEALING
from tenure.errors import InvalidValue, QueryFailed
from tests.conformance.acts import BY, count, dead_letter, enqueue, get, running

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from support.store import Database
    from tenure._store.steps import Op

    Verb: TypeAlias = Callable[[Database], Awaitable[tuple[Op[object], str, str]]]


async def cancel(db: Database) -> tuple[Op[object], str, str]:
    job_id = await enqueue(db)
    return db.store.job_commands.cancel([job_id], BY), "cancel", f"job:{job_id}"


async def revoke(db: Database) -> tuple[Op[object], str, str]:
    job_id = (await running(db)).job.id
    return db.store.job_commands.revoke([job_id], BY), "revoke", f"job:{job_id}"


async def hold(db: Database) -> tuple[Op[object], str, str]:
    job_id = await enqueue(db)
    return db.store.job_commands.hold([job_id], BY), "hold", f"job:{job_id}"


async def resume(db: Database) -> tuple[Op[object], str, str]:
    job_id = await enqueue(db, held=True)
    return db.store.job_commands.resume([job_id], BY), "resume", f"job:{job_id}"


async def retry(db: Database) -> tuple[Op[object], str, str]:
    job_id = await dead_letter(db)
    return db.store.job_commands.retry([job_id], BY), "retry", f"job:{job_id}"


async def discard(db: Database) -> tuple[Op[object], str, str]:
    job_id = await dead_letter(db)
    return db.store.job_commands.discard([job_id], BY), "discard", f"job:{job_id}"


async def move(db: Database) -> tuple[Op[object], str, str]:
    job_id = await enqueue(db)
    return db.store.job_commands.move([job_id], Changes(priority=9), BY), "move", f"job:{job_id}"


async def edit(db: Database) -> tuple[Op[object], str, str]:
    job_id = await enqueue(db)
    changes = JobChanges(priority=9)
    op = db.store.job_edits.edit([job_id], changes, BY, sealing=NOT_SEALING)
    return op, "edit", f"job:{job_id}"


async def rerun(db: Database) -> tuple[Op[object], str, str]:
    job_id = await dead_letter(db)
    op = db.store.job_edits.rerun([job_id], BY, args=None, keep_key=False, sealing=NOT_SEALING)
    return op, "rerun", f"job:{job_id}"


async def delete(db: Database) -> tuple[Op[object], str, str]:
    job_id = await dead_letter(db)
    return db.store.job_commands.delete([job_id], BY), "delete", f"job:{job_id}"


async def pause_queue(db: Database) -> tuple[Op[object], str, str]:
    return db.store.queues.pause("q", BY), "queue.pause", "queue:q"


async def resume_queue(db: Database) -> tuple[Op[object], str, str]:
    return db.store.queues.resume("*", BY), "queue.resume", "queue:*"


async def limit_queue(db: Database) -> tuple[Op[object], str, str]:
    return db.store.queues.limit("q", 3, BY), "queue.limit", "queue:q"


async def configure_queue(db: Database) -> tuple[Op[object], str, str]:
    op = db.store.queues.configure("q", BY, lease=None, max_attempts=2)
    return op, "queue.configure", "queue:q"


async def set_setting(db: Database) -> tuple[Op[object], str, str]:
    return db.store.settings.set("lease", 20, BY), "setting.set", "setting:lease"


async def reset_setting(db: Database) -> tuple[Op[object], str, str]:
    await db.run(db.store.settings.set("lease", 20, BY))
    return db.store.settings.reset("lease", BY), "setting.reset", "setting:lease"


async def drain(db: Database) -> tuple[Op[object], str, str]:
    await db.run(db.store.workers.register(NewWorker(A, "w", "h", 1, "0", ["q"], 1)))
    return db.store.workers.drain(A, BY), "worker.drain", f"worker:{A}"


@pytest.mark.parametrize(
    "verb",
    [
        cancel,
        revoke,
        hold,
        resume,
        retry,
        discard,
        move,
        edit,
        rerun,
        delete,
        pause_queue,
        resume_queue,
        limit_queue,
        configure_queue,
        set_setting,
        reset_setting,
        drain,
    ],
)
async def test_every_verb_of_an_operator_leaves_its_row(db: Database, verb: Verb) -> None:
    """Shows R38."""
    op, action, target = await verb(db)
    db.clock.advance(SECOND)
    await db.run(op)
    row = (await db.run(db.store.audit.list(target)))[0]

    assert (row.action, row.target, row.at) == (action, target, db.clock.now)
    assert (row.actor, row.source, row.reason) == ("ada", "suite", "because")


async def test_change_is_reported_with_before_and_after(db: Database) -> None:
    """Shows R38."""
    await db.run(db.store.settings.set("lease", 20, BY))
    await db.run(db.store.settings.set("lease", 40.5, BY))
    await db.run(db.store.settings.reset("lease", BY))
    rows = await db.run(db.store.audit.list("setting:lease"))
    assert [(row.before, row.after) for row in rows] == [(40.5, None), (20, 40.5), (None, 20)]

    await db.run(db.store.queues.limit("q", 3, BY))
    await db.run(db.store.queues.configure("q", BY, lease=20 * SECOND, max_attempts=None))
    configured, limited = await db.run(db.store.audit.list("queue:q"))
    assert limited.before.get("max_running") is None
    assert limited.after["max_running"] == configured.before["max_running"] == 3
    assert (configured.before.get("lease"), configured.after["lease"]) == (None, "0:00:20")


async def test_a_verb_over_many_leaves_a_row_for_each_that_it_changed(db: Database) -> None:
    ids = [await enqueue(db) for _ in range(3)]
    await db.run(db.store.job_commands.hold([*ids[:2], JobId(999_999)], BY))

    assert await count(db, "audit") == 2
    assert len(await db.run(db.store.audit.list(f"job:{ids[0]}"))) == 1
    assert await db.run(db.store.audit.list(f"job:{ids[2]}")) == []


async def test_a_verb_that_changed_nothing_leaves_no_row(db: Database) -> None:
    unknown = [JobId(999_999)]
    await db.run(db.store.job_commands.cancel(unknown, BY))
    await db.run(db.store.job_commands.revoke(unknown, BY))
    await db.run(db.store.job_commands.hold(unknown, BY))
    await db.run(db.store.job_commands.resume(unknown, BY))
    await db.run(db.store.job_commands.retry(unknown, BY))
    await db.run(db.store.job_commands.discard(unknown, BY))
    await db.run(db.store.settings.reset("lease", BY))
    await db.run(db.store.workers.drain(WorkerId(A), BY))

    assert await count(db, "audit") == 0


async def test_a_verb_that_is_refused_leaves_no_row(db: Database) -> None:
    with pytest.raises(InvalidValue):
        await db.run(db.store.queues.limit("q", -1, BY))
    with pytest.raises(InvalidValue):
        await db.run(db.store.settings.set("lease", 0, BY))

    assert await count(db, "audit") == 0


async def test_a_verb_whose_row_cannot_be_written_changes_nothing(db: Database) -> None:
    """The change and its row are one transaction."""
    job_id = await enqueue(db)
    no_one = By("a\0b")
    for op in (
        db.store.job_commands.cancel([job_id], no_one),
        db.store.job_commands.hold([job_id], no_one),
    ):
        with pytest.raises(QueryFailed):
            await db.run(op)
    with pytest.raises(QueryFailed):
        await db.run(db.store.queues.limit("q", 1, no_one))

    job = await get(db, job_id)
    assert (job.state, job.held) == (State.QUEUED, False)
    assert await count(db, "queue") == await count(db, "audit") == 0


async def test_rows_are_read_newest_first_up_to_the_limit(db: Database) -> None:
    for limit in (1, 2, 3):
        await db.run(db.store.queues.limit("q", limit, BY))
    rows = await db.run(db.store.audit.list("queue:q", count=2))

    assert [row.after["max_running"] for row in rows] == [3, 2]
