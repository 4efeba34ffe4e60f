"""The installation at a glance, by both faces."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import uuid4

from support.race_helpers import dead_letter, ended, held
from tenure._model.ids import WorkerId
from tenure._model.worker import NewWorker
from tenure.admin import By, to_json
from tenure.types import AlertCode, Count, TargetKind

if TYPE_CHECKING:
    from support.store import Database
    from tenure.admin import Admin


async def test_an_installation_without_anything_is_well(admin: Admin) -> None:
    """Shows R35."""
    overview = admin.overview()
    assert overview.words == "No workers are live. Start one: tenure worker module:app"
    assert (overview.attention, overview.more) == ([], 0)
    assert overview.numbers.oldest_due is None
    assert (overview.numbers.workers_active, overview.numbers.workers_total) == (0, 0)


async def test_numbers_sentences_workers_and_what_was_completed(admin: Admin, db: Database) -> None:
    """Shows R35."""
    for _ in range(2):
        admin.jobs.enqueue("send", {}, By("ada"), queue="mail")
    admin.queues.pause("bulk", By("ada", reason="failover"))
    admin.jobs.enqueue("load", {}, By("ada"), queue="bulk")
    await dead_letter(db)
    [lease] = await held(db)
    await db.run(db.store.settlement.settle([ended(lease)]))
    for beaten in (0, 60):
        me = WorkerId(uuid4())
        await db.run(
            db.real.workers.register(NewWorker(me, f"w{beaten}", "host", 1, "0", ["default"], 10))
        )
        await db.fetch(
            "UPDATE tenure.worker SET last_heartbeat_at = clock_timestamp() - $1 WHERE id = $2",
            timedelta(seconds=beaten),
            me,
        )

    overview = admin.overview()

    numbers = overview.numbers
    assert (numbers.due, numbers.failed, numbers.failed_day) == (Count(3), Count(1), Count(1))
    assert (numbers.workers_active, numbers.workers_total) == (1, 2)
    assert numbers.oldest_due is not None
    assert [(each.code, each.target.name) for each in overview.attention] == [
        (AlertCode.NOT_SERVED, "mail"),
        (AlertCode.QUEUE_PAUSED, "bulk"),
        (AlertCode.DEAD_LETTERS, None),
    ]
    assert overview.attention[0].target.kind is TargetKind.QUEUE
    assert overview.words == "3 things need attention."
    assert [worker.name for worker in overview.workers] == ["w60", "w0"]
    assert [each.job_id for each in overview.completions] == [lease.job_id]
    queues = {queue.name: queue for queue in overview.queues}
    assert (queues["bulk"].paused, queues["mail"].paused) == (True, False)
    assert (queues["default"].workers, queues["mail"].workers) == (1, 0)


async def test_both_faces_tell_the_same_and_it_can_be_written_as_json(admin: Admin) -> None:
    admin.jobs.enqueue("send", {}, By("ada"), queue="mail")
    one, other = admin.overview(), await admin.aoverview()
    assert (one.attention, one.numbers.due) == (other.attention, other.numbers.due)
    assert to_json(one)["attention"][0]["target"] == {"kind": "queue", "name": "mail"}
