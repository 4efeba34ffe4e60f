"""Notices: the statement that files a dead letter also enqueues the notice, grouped by cause."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from support.store import SECOND, A, B, lanes
from tenure._model.notice import DeclaredNoticeRules, NewNoticeRule, NoticeEvent, NoticeFormat
from tenure._model.outcome import Failed
from tenure._model.worker import NewWorker, WorkerState
from tenure._services.notices import report_late_queues
from tenure.errors import Error, InvalidValue
from tests.conformance.acts import (
    BY,
    ERROR,
    a_job,
    claim,
    count,
    ended,
    enqueue,
    lose,
    running,
    settle,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from support.store import Database, Party
    from tenure._model.ids import WorkerId

OPS = NewNoticeRule("ops", NoticeEvent.FAILED, "ops", "https://hooks.example.com/x")
QUEUE = "tenure.notices"


async def add(db: Database, rule: NewNoticeRule = OPS, **fields: Any) -> None:
    await db.run(db.store.notices.add(replace(rule, **fields), BY))


async def fail(db: Database, task: str = "task", error: Error = ERROR, **fields: Any) -> int:
    """Make a dead letter."""
    claimed = await running(db, task, max_attempts=1, **fields)
    await settle(db, claimed, Failed(error))
    return claimed.job.id


async def notices(db: Database) -> Sequence[dict[str, Any]]:
    rows = await db.fetch(
        "SELECT id, task, args, run_at, created_at FROM tenure.job WHERE queue = $1 ORDER BY id",
        QUEUE,
    )
    return [dict(row) for row in rows]


async def take(db: Database) -> Sequence[Any]:
    """Claim the notices that are due."""
    db.clock.advance(SECOND)
    return await claim(db, count=10, queues=[QUEUE])


async def test_a_dead_letter_makes_a_notice_in_its_statement(db: Database) -> None:
    await add(db)
    job_id = await fail(db)
    [notice] = await notices(db)
    args = notice["args"]
    assert notice["task"] == "tenure.notice"
    assert notice["run_at"] == notice["created_at"]
    assert {name: args[name] for name in ("rule", "event", "queue", "task", "count")} == {
        "rule": "ops",
        "event": "failed",
        "queue": "q",
        "task": "task",
        "count": 1,
    }
    assert (args["job_id"], args["last_job_id"]) == (job_id, job_id)
    # A notice never holds the text of an error, so that an erasure doesn't have to look for it.
    assert ERROR.message not in str(args)


async def test_a_poisoned_job_makes_a_notice(db: Database) -> None:
    await add(db)
    await enqueue(db, max_losses=0)
    [claimed] = await claim(db)
    await db.run(db.store.leases.confirm([claimed.lease]))
    await lose(db, claimed)
    assert await count(db, "job_failed") == 1
    assert [notice["args"]["count"] for notice in await notices(db)] == [1]


async def test_without_a_rule_there_is_no_notice(db: Database) -> None:
    await fail(db)
    await add(db, queue="other", name="a")
    await add(db, task="mail.*", name="b")
    await add(db, queue="q_", name="c")
    await fail(db)
    assert await notices(db) == []


@pytest.mark.parametrize(
    ("queue", "task"), [("*", "*"), ("q", "*"), ("mail*", "*"), ("*", "mail.*"), ("mail_x", "*")]
)
async def test_patterns_choose_jobs_by_queue_and_task(db: Database, queue: str, task: str) -> None:
    await add(db, queue=queue, task=task)
    await fail(db, "mail.send", queue="mail_x")
    await fail(db, "other", queue="mailbx")
    found = {notice["args"]["queue"] for notice in await notices(db)}
    assert (
        found
        == {
            ("*", "*"): {"mail_x", "mailbx"},
            ("q", "*"): set(),
            ("mail*", "*"): {"mail_x", "mailbx"},
            ("*", "mail.*"): {"mail_x"},
            ("mail_x", "*"): {"mail_x"},
        }[queue, task]
    )


async def test_events_before_delivery_join_the_notice_that_waits(db: Database) -> None:
    await add(db)
    first = await fail(db)
    last = first
    for _ in range(4):
        last = await fail(db)
    [notice] = await notices(db)
    assert notice["args"]["count"] == 5
    assert (notice["args"]["job_id"], notice["args"]["last_job_id"]) == (first, last)


async def test_events_after_delivery_make_one_summary_at_the_windows_end(db: Database) -> None:
    await add(db, group_for=timedelta(minutes=7))
    await fail(db)
    [first] = await take(db)
    for _ in range(3):
        await fail(db)
    [_, summary] = await notices(db)
    assert summary["args"]["count"] == 3
    assert summary["run_at"] - first.job.run_at == timedelta(minutes=7)
    assert first.job.args["count"] == 1

    # The summary goes out, and more of the same follow: the next one is a window later.
    await db.fetch("UPDATE tenure.job SET run_at = created_at WHERE id = $1", summary["id"])
    [taken] = await take(db)
    assert taken.job.args["count"] == 3
    await fail(db)
    newest = (await notices(db))[-1]
    assert newest["run_at"] - summary["run_at"] == timedelta(minutes=7)


async def test_a_cause_that_was_quiet_makes_a_notice_at_once(db: Database) -> None:
    await add(db)
    await fail(db)
    await take(db)
    await db.fetch("UPDATE tenure.notice_group SET due_at = due_at - interval '301 s'")
    await fail(db)
    newest = (await notices(db))[-1]
    assert newest["run_at"] == newest["created_at"]


async def test_causes_and_rules_have_groups_of_their_own(db: Database) -> None:
    await add(db)
    await add(db, name="second", queue="q*")
    await fail(db)
    await fail(db, error=Error("KeyError", "another"))
    await fail(db, "other")
    found = [(notice["args"]["rule"], notice["args"]["task"]) for notice in await notices(db)]
    assert sorted(found) == [
        ("ops", "other"),
        ("ops", "task"),
        ("ops", "task"),
        ("second", "other"),
        ("second", "task"),
        ("second", "task"),
    ]


async def test_many_causes_end_in_one_group(db: Database) -> None:
    await add(db)
    for number in range(103):
        await fail(db, f"task{number}")
    found = await notices(db)
    assert len(found) == 101
    [other] = [notice for notice in found if notice["args"]["group"] == "~"]
    assert other["args"]["count"] == 3


async def test_a_notice_that_fails_makes_no_notice(db: Database) -> None:
    await add(db)
    await fail(db)
    [claimed] = await take(db)
    await db.fetch("UPDATE tenure.job SET max_attempts = 1 WHERE id = $1", claimed.job.id)
    await settle(db, claimed, Failed(ERROR))
    assert await count(db, "job_failed") == 2
    assert await notices(db) == []
    # Nor does another task that someone puts into the queue of notices.
    await fail(db, queue=QUEUE)
    assert await notices(db) == []


async def test_a_notice_that_an_operator_has_locked_does_not_stop_a_settle(db: Database) -> None:
    await add(db)
    await fail(db)
    [notice] = await notices(db)
    operator = await db.caller("operator")
    async with operator.connection.transaction():
        await operator.connection.execute(
            "SELECT FROM tenure.job WHERE id = %s FOR UPDATE", [notice["id"]]
        )
        await asyncio.wait_for(fail(db), 5)
    assert [each["args"]["count"] for each in await notices(db)] == [1, 1]


async def test_a_batch_of_dead_letters_makes_one_notice_per_cause(db: Database) -> None:
    await add(db)
    await db.run(db.store.jobs.enqueue([a_job("a", max_attempts=1) for _ in range(5)]))
    await db.run(db.store.jobs.enqueue([a_job("b", max_attempts=1) for _ in range(3)]))
    claims = await claim(db, count=8)
    requests = [ended(each, Failed(ERROR)) for each in claims]
    await db.run(db.store.settlement.settle(requests))
    assert {n["args"]["task"]: n["args"]["count"] for n in await notices(db)} == {"a": 5, "b": 3}


async def test_removing_a_rule_ends_its_notices(db: Database) -> None:
    await add(db)
    await fail(db)
    assert await db.run(db.store.notices.remove(["ops", "none"], BY)) == [True, False]
    await fail(db)
    assert [notice["args"]["count"] for notice in await notices(db)] == [1]
    assert await count(db, "notice_group") == 0
    assert await db.run(db.store.notices.list()) == []


async def test_a_rules_name_is_taken_once(db: Database) -> None:
    await add(db)
    with pytest.raises(InvalidValue, match="name must be new"):
        await add(db)
    [rule] = await db.run(db.store.notices.list())
    assert (rule.name, rule.event, rule.format) == ("ops", "failed", NoticeFormat.STANDARD)
    assert (rule.created_by, rule.program, rule.group_for) == ("ada", None, timedelta(minutes=5))


async def test_a_test_notice_is_due_at_once(db: Database) -> None:
    await add(db)
    job_id = await db.run(db.store.notices.test("ops", BY))
    [notice] = await notices(db)
    assert notice["id"] == job_id
    assert notice["args"]["event"] == "test"
    assert await db.run(db.store.notices.test("none", BY)) is None


async def test_old_groups_are_pruned(db: Database) -> None:
    await add(db)
    await fail(db)
    await db.run(db.store.maintenance.maintain())
    assert await count(db, "notice_group") == 1
    await db.fetch("UPDATE tenure.notice_group SET due_at = due_at - interval '8 days'")
    await db.run(db.store.maintenance.maintain())
    assert await count(db, "notice_group") == 0


async def declare(
    db: Database, *rules: NewNoticeRule, program: str = "shop", version: tuple[int, ...] = ()
) -> DeclaredNoticeRules:
    return await db.run(db.store.notices.declare(program, version, rules))


async def test_a_program_declares_its_rules(db: Database) -> None:
    await add(db, name="theirs")
    mine = replace(OPS, name="mine")
    assert await declare(db, mine, replace(OPS, name="second")) == DeclaredNoticeRules(
        made=("mine", "second")
    )
    assert await declare(db, mine, replace(OPS, name="second")) == DeclaredNoticeRules()
    db.clock.advance(SECOND)
    assert await declare(db, replace(mine, queue="mail*")) == DeclaredNoticeRules(
        changed=("mine",), removed=("second",)
    )
    rules = {rule.name: rule for rule in await db.run(db.store.notices.list())}
    assert {name: rule.program for name, rule in rules.items()} == {"mine": "shop", "theirs": None}
    assert rules["mine"].queue == "mail*"


async def test_a_rule_of_another_owner_or_a_newer_version_is_left_alone(db: Database) -> None:
    await add(db)
    assert (await declare(db, replace(OPS, queue="x"))).refused == ("ops",)
    mine = replace(OPS, name="mine")
    await declare(db, mine, version=(2,))
    old = await declare(db, replace(mine, queue="x"), version=(1,))
    assert old.refused == ("mine",)
    assert await declare(db, version=(1,)) == DeclaredNoticeRules()
    assert (await declare(db, mine, program="billing", version=(3,))).refused == ("mine",)
    assert (await declare(db, version=(2, 1))).removed == ("mine",)


async def test_each_change_of_a_rule_is_audited(db: Database) -> None:
    await add(db)
    await declare(db, replace(OPS, name="mine"))
    await db.run(db.store.notices.test("ops", BY))
    await db.run(db.store.notices.remove(["ops"], BY))
    rows = await db.fetch("SELECT action, target, source FROM tenure.audit ORDER BY id")
    assert [tuple(row.values()) for row in rows] == [
        ("notice.add", "notice:ops", "suite"),
        ("notice.declare", "notice:mine", "code"),
        ("notice.test", "notice:ops", "suite"),
        ("notice.remove", "notice:ops", "suite"),
    ]


async def test_a_missed_tick_makes_a_notice(db: Database) -> None:
    await add(db, event=NoticeEvent.SCHEDULE_MISSED, queue="q")
    await db.fetch(
        "INSERT INTO tenure.schedule (name, every, timezone, task, queue, args, priority, missed, "
        "missed_within, missed_limit, overlap, jitter, created_at, changed_at) VALUES "
        "('nightly', '1 day', 'UTC', 'task', 'q', '{}', 5, 'skip', '1 day', 1, 'allow', '0', "
        "now(), now())"
    )
    for reason in ("missed", "overlap", "paused", "missed"):
        await db.fetch(
            "INSERT INTO tenure.schedule_tick VALUES "
            "('nightly', clock_timestamp(), now(), NULL, 'skipped', $1)",
            reason,
        )
    [notice] = await notices(db)
    args = notice["args"]
    assert (args["event"], args["subject"], args["count"]) == ("schedule_missed", "nightly", 2)


async def register(db: Database, worker: WorkerId, name: str) -> None:
    await db.run(db.store.workers.register(NewWorker(worker, name, "host", 1, "1", ["q"], 1)))


async def test_a_lost_worker_is_reported_once(db: Database) -> None:
    await add(db, event=NoticeEvent.WORKER_LOST)
    await register(db, A, "alive")
    await register(db, B, "dead")
    db.clock.advance(61 * SECOND)
    await db.run(db.store.workers.heartbeat(A, state=WorkerState.ACTIVE, running=0))
    silent = timedelta(minutes=1)
    assert await db.run(db.store.notices.report_lost_workers(silent)) == 1
    assert await db.run(db.store.notices.report_lost_workers(silent)) == 0
    [notice] = await notices(db)
    assert (notice["args"]["subject"], notice["args"]["count"]) == ("dead", 1)
    # It comes back, and is lost again.
    await db.run(db.store.workers.heartbeat(B, state=WorkerState.ACTIVE, running=0))
    db.clock.advance(50 * SECOND)
    await db.run(db.store.workers.heartbeat(A, state=WorkerState.ACTIVE, running=0))
    db.clock.advance(11 * SECOND)
    await db.run(db.store.notices.report_lost_workers(silent))
    [notice] = await notices(db)
    assert notice["args"]["count"] == 2


async def test_a_worker_that_stopped_is_not_lost(db: Database) -> None:
    await add(db, event=NoticeEvent.WORKER_LOST)
    await register(db, A, "stopped")
    await db.run(db.store.workers.heartbeat(A, state=WorkerState.OFFLINE, running=0))
    db.clock.advance(600 * SECOND)
    assert await db.run(db.store.notices.report_lost_workers(timedelta(minutes=1))) == 0
    assert await notices(db) == []


async def test_a_queue_that_is_behind_makes_a_notice(db: Database) -> None:
    await add(db, event=NoticeEvent.QUEUE_BEHIND, threshold=timedelta(minutes=5))
    await add(db, event=NoticeEvent.QUEUE_BEHIND, threshold=timedelta(hours=1), name="patient")
    await enqueue(db)
    await enqueue(db, queue="paused")
    await enqueue(db, queue=QUEUE)
    await db.run(db.store.queues.pause("paused", BY))
    assert await db.run(report_late_queues(db.store)) == 0
    db.clock.advance(301 * SECOND)
    assert await db.run(report_late_queues(db.store)) == 1
    [_, notice] = await notices(db)
    args = notice["args"]
    assert (args["rule"], args["queue"], args["event"]) == ("ops", "q", "queue_behind")
    assert args["waited"] >= 301


async def test_settles_of_many_processes_do_not_deadlock(db: Database) -> None:
    """Each settles batches of the same causes in another order. Each dead letter is counted."""
    await add(db)
    await add(db, name="second")
    parties = [await db.party(f"p{number}") for number in range(4)]
    rounds = 10
    for number in range(rounds * len(parties)):
        tasks = ["a", "b", "c"] if number % 2 else ["c", "b", "a"]
        await db.run(db.store.jobs.enqueue([a_job(task, max_attempts=1) for task in tasks]))

    async def work(party: Party) -> None:
        for _ in range(rounds):
            claims = await party.run(db.store.leases.claim(lanes("q"), count=3, worker=A))
            requests = [ended(each, Failed(ERROR)) for each in claims.jobs]
            await party.run(db.store.settlement.settle(requests))

    async with asyncio.timeout(30):
        await asyncio.gather(*map(work, parties))
    failed = await count(db, "job_failed")
    assert failed == rounds * len(parties) * 3
    found = await notices(db)
    assert sum(each["args"]["count"] for each in found) == 2 * failed
    assert len(found) == 6
