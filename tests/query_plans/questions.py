"""The hot statements with realistic parameters, taken from the operations that send them."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from tenure._model.audit import By
from tenure._model.edit import JobChanges
from tenure._model.ids import JobId, Token, WorkerId
from tenure._model.job import PRIORITIES, NewJob, State
from tenure._model.lease import Lease
from tenure._model.operation import (
    Changes,
    Filter,
    NewBackfill,
    NewOperation,
    OperationKind,
    OperationState,
)
from tenure._model.outcome import (
    Failed,
    FinalReport,
    Loss,
    Lost,
    Released,
    SettleRequest,
    Succeeded,
)
from tenure._model.queue import Floor, Lane
from tenure._model.schedule import NewSchedule, Timing
from tenure._rules import lifecycle, selector_syntax
from tenure._rules.sealing import NOT_SEALING
from tenure._store.postgres.store import PostgresStore
from tenure._store.steps import Query
from tenure.errors import Error

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tenure._model.ids import Json
    from tenure._model.outcome import Outcome
    from tenure._store.steps import Op, Row, Rows

STORE = PostgresStore()
WORKER = WorkerId(UUID(int=7))
BY = By("ada")
ERROR = Error("ValueError", "no", trace="trace", signature="ValueError: no")
MINUTE = timedelta(minutes=1)
FLOOR = Floor(datetime(2030, 1, 1, tzinfo=UTC), JobId(500))
LANES = [Lane(queue, priority, FLOOR) for priority in PRIORITIES for queue in ("mail", "bulk")]


def leases(count: int) -> list[Lease]:
    return [Lease(JobId(20_000 + n), Token(2**40), WORKER, MINUTE) for n in range(count)]


def ended(count: int, outcome: Outcome) -> list[SettleRequest]:
    answer = lifecycle.settle(outcome, attempt=1, limit=3, backoff=MINUTE)
    return [SettleRequest(lease, answer) for lease in leases(count)]


LAST_REPORT = Succeeded(1, report=FinalReport(cursor=3, items={"k": 1, "l": 2}))
NOW = datetime.now(UTC)
A_SCHEDULE: Row = {
    **dict.fromkeys(
        [
            "cron",
            "at",
            "max_attempts",
            "max_losses",
            "lease",
            "target",
            "meta",
            "program",
            "set_missed",
            "set_missed_within",
            "set_missed_limit",
            "set_jitter",
            "paused_at",
            "paused_until",
            "paused_by",
            "paused_reason",
            "retired_at",
            "last_at",
        ]
    ),
    "name": "s-7",
    "version": 1,
    "every": MINUTE,
    "timezone": "UTC",
    "task": "send",
    "queue": "mail",
    "args": {},
    "priority": 5,
    "missed": "latest",
    "missed_within": MINUTE,
    "missed_limit": 9,
    "overlap": "allow",
    "jitter": timedelta(0),
    "program_version": [],
    "next_at": NOW - MINUTE,
    "last_job_id": 20_000,
    "created_at": NOW,
    "changed_at": NOW,
    "now": NOW,
}
NEW_SCHEDULES = [
    NewSchedule(name=f"new-{n}", timing=Timing(every=MINUTE), job=NewJob("send", queue="mail"))
    for n in range(100)
]

AN_OPERATION: Row = {
    "id": 7,
    "kind": "retry",
    "state": "running",
    "filter": {},
    "changes": None,
    "rate": 500,
    "total": 1000,
    "done": 0,
    "chunk_limit": None,
    "outcomes": {},
    "actor": "ada",
    "source": "cli",
    "reason": None,
    "created_at": NOW,
    "started_at": NOW,
    "ended_at": None,
    "next_at": NOW,
    "waiting": None,
}
AN_ERASURE: Row = {**AN_OPERATION, "kind": "erase"}
A_WAIT: Row = {**AN_ERASURE, "done": 1000, "waiting": list(range(20_000, 20_100))}


A_BACKFILL = NewBackfill(
    schedule="s-7",
    queue="mail",
    since=NOW - 100 * MINUTE,
    until=NOW,
    fire_ats=[NOW - n * MINUTE for n in range(100)],
    rate=500,
)


def search(given: str) -> Op[Any]:
    """A search for what is said."""
    return STORE.job_queries.search(selector_syntax.parse(given), count=50, window=100_000)


def operation(kind: OperationKind, **given: Any) -> Op[Any]:
    """The start of an operation on what is said."""
    return STORE.operations.start(NewOperation(kind=kind, filter=Filter(**given), rate=500), BY)


# Answers that lead an operation on to its later statements.
_ANSWERS: Mapping[str, list[Row]] = {
    "check_lease": [{"held": True, "isolation": "read committed", "filed_on": date(2030, 1, 1)}],
    "lock_queues": [{"name": "mail", "adopted": False, "now": NOW}],
    "rescue": [{"id": None, "found": 0, "now": FLOOR.run_at}],
    "lock_idempotency_key": [{"digest": "ab", "answer": None}],
    "archive_days": [{"day": datetime.now(UTC).date()}],
    "clock": [{"now": NOW}],
    "may_choose_ids": [{"may": True}],
    "newest_id": [{"id": 3_000_000}],
    "lock_rollup_progress": [
        {
            "closed_to": NOW,
            **dict.fromkeys(["final_to", "marked_to", "counted_until"], NOW - MINUTE),
            "whole": True,
        }
    ],
    "rollup_progress": [{"now": NOW, "counted_until": NOW, "final_to": NOW}],
    "known_queues": [{"name": "bulk"}, {"name": "mail"}],
    "next_tick": [{"now": NOW, "next_at": NOW}],
    "lock_due_schedules": [{**A_SCHEDULE, "name": f"s-{n}", "overlap": "skip"} for n in range(100)],
    "declared_schedules": [{**A_SCHEDULE, "next_at": NOW + MINUTE, "program": "shop"}],
    "lock_schedules": [{**A_SCHEDULE, "next_at": NOW + MINUTE, "program": "shop"}],
    "start_operation": [{"id": 7}],
    "freeze_failed": [{"total": 100}],
    "due_operation": [AN_OPERATION],
    "operation_items": [{"place": n, "job_id": 20_000 + n, "outcome": None} for n in range(100)],
    "lock_operation": [AN_OPERATION],
}


def sent(op: Op[Any], name: str, **answers: Rows) -> Query:
    """The first step of this name that an operation sends."""
    step = next(op)
    while not isinstance(step, Query) or step.name != name:
        known = {**_ANSWERS, **answers}
        step = op.send(known.get(step.name, []) if isinstance(step, Query) else [])
    op.close()
    return step


def jobs(count: int, *, keyed: bool) -> list[NewJob]:
    return [
        NewJob("send", queue="mail", args={"to": n}, key=f"new-{n}" if keyed else None)
        for n in range(count)
    ]


def nothing() -> Op[Json]:
    """An operation that sends nothing."""
    yield from ()


def by_taken_keys(count: int, name: str) -> Query:
    """What a role sends that cannot choose ids."""
    new = jobs(count, keyed=True)
    taken: list[Row] = [{"task": job.task, "key": job.key, "job_id": 0} for job in new]
    op = STORE.jobs.enqueue(new)
    return sent(op, name, may_choose_ids=[{"may": False}], take_keys=taken)


def _within(outcome: Outcome) -> Op[None]:
    [one] = ended(1, outcome)
    return STORE.settlement.settle_within(one.lease, one.settlement)


BATCH = 100
FAILED = Failed(ERROR)
AN_ID = JobId(20_000)

# What our own connections send, by the name of the case.
OWN: Mapping[str, Query] = {
    "enqueue": sent(STORE.jobs.enqueue(jobs(BATCH, keyed=False)), "enqueue"),
    "enqueue_alike": sent(STORE.jobs.enqueue(jobs(1, keyed=False)), "enqueue_alike"),
    "enqueue_keyed": sent(STORE.jobs.enqueue(jobs(BATCH, keyed=True)), "enqueue_keyed"),
    "may_choose_ids": sent(STORE.jobs.enqueue(jobs(BATCH, keyed=True)), "may_choose_ids"),
    "take_keys": by_taken_keys(BATCH, "take_keys"),
    "enqueue_taken": by_taken_keys(BATCH, "enqueue_taken"),
    "claim": sent(STORE.leases.claim(LANES, count=BATCH, worker=WORKER), "claim"),
    "claim_limited": sent(
        STORE.leases.claim(LANES, count=BATCH, worker=WORKER, limited=True), "claim_limited"
    ),
    "confirm_claim": sent(STORE.leases.confirm(leases(BATCH)), "confirm_claim"),
    "lock_queues": sent(
        STORE.leases.claim(LANES, count=BATCH, worker=WORKER, limited=True), "lock_queues"
    ),
    "mark_limited": sent(
        STORE.leases.claim(LANES, count=BATCH, worker=WORKER, limited=True), "mark_limited"
    ),
    "claim_blockers": sent(STORE.leases.claim(LANES, count=BATCH, worker=WORKER), "claim_blockers"),
    "renew": sent(STORE.leases.renew(leases(BATCH)), "renew"),
    "overdue": sent(STORE.leases.overdue(MINUTE), "overdue"),
    "suspect_waits": sent(STORE.leases.suspect_waits(["mail", "bulk"], 3), "suspect_waits"),
    "locked": sent(STORE.inspection.locked(["mail", "bulk"], MINUTE, count=3), "locked"),
    "notify_queue": sent(STORE.inspection.notify_queue(), "notify_queue"),
    "mark_awaited": sent(STORE.jobs.wait(AN_ID), "mark_awaited"),
    "busy_leases": sent(STORE.leases.renew(leases(BATCH)), "busy_leases"),
    "progress": sent(
        STORE.leases.progress(leases(1)[0], done=3, items={"k": 1, "l": 2}), "progress"
    ),
    "final_report": sent(STORE.settlement.settle(ended(1, LAST_REPORT)), "final_report"),
    "complete": sent(STORE.settlement.settle(ended(BATCH, Succeeded({"rows": 1}))), "complete"),
    "settle": sent(STORE.settlement.settle(ended(BATCH, FAILED)), "settle"),
    "settle, to release": sent(STORE.settlement.settle(ended(BATCH, Released())), "settle"),
    "settle, deaths": sent(
        STORE.settlement.settle(ended(BATCH, Lost(Loss.SHARED, ERROR))), "settle"
    ),
    "settle, one": sent(STORE.settlement.settle(ended(1, FAILED)), "settle"),
    "settle_again": sent(STORE.settlement.settle(ended(BATCH, FAILED)), "settle_again"),
    "await_key": Query("await_key", {"task": "send", "key": "key-7"}),
    "rescue": sent(STORE.leases.rescue(), "rescue"),
    "rescue, but what is kept": sent(STORE.leases.rescue(kept=leases(BATCH)), "rescue"),
    "rescue, of queues": sent(
        STORE.leases.claim(LANES, count=BATCH, worker=WORKER, limited=True), "rescue"
    ),
    "check_lease": sent(STORE.settlement.check(leases(1)[0]), "check_lease"),
    "guard": sent(STORE.leases.guard(leases(1)[0]), "guard"),
    "next_due": sent(STORE.leases.next_due(LANES), "next_due"),
    "queue_names": sent(STORE.leases.queue_names(), "queue_names"),
    "get": sent(STORE.jobs.get(AN_ID), "get"),
    "attempts": sent(STORE.jobs.attempts(AN_ID), "attempts"),
    "last_attempts": sent(STORE.jobs.last_attempts([AN_ID] * 50), "last_attempts"),
    "items": sent(STORE.jobs.items(AN_ID), "items"),
    "list_live": sent(STORE.job_queries.list(State.QUEUED, queue="mail"), "list_live"),
    "list_failed": sent(STORE.job_queries.list(State.FAILED), "list_failed"),
    "list_failed, of a task": sent(
        STORE.job_queries.list(State.FAILED, task="send"), "list_failed"
    ),
    "archive_page_end": sent(STORE.job_queries.list(State.COMPLETED), "archive_page_end"),
    "list_running": sent(STORE.job_queries.list(State.RUNNING), "list_running"),
    "list_archive": sent(STORE.job_queries.list(State.COMPLETED, task="send"), "list_archive"),
    "list_audit": sent(STORE.audit.list("job:7"), "list_audit"),
    "search_audit": sent(
        STORE.audit.search(actor="ada"), "search_audit", newest_audit=[{"id": 9_000}]
    ),
    "newest_audit": sent(STORE.audit.search(), "newest_audit"),
    "leases": sent(STORE.inspection.leases(queue="mail"), "leases"),
    "queue_minutes": sent(STORE.inspection.throughput(["mail", "bulk"]), "queue_minutes"),
    "last_ticks": sent(STORE.inspection.recent_runs(["s-7", "s-8"]), "last_ticks"),
    "job_states": Query("job_states", {"ids": [20_000, 1_000_001, 2_000_001]}),
    "clock": sent(search("state:queued"), "clock"),
    "search_queued": sent(search("state:due task:send"), "search_queued"),
    "search_queued, by errors": sent(search("state:retrying error:E"), "search_queued"),
    "search_running": sent(search("state:running"), "search_running"),
    "search_running, what is over": sent(search("state:expired queue:mail"), "search_running"),
    "search_failed": sent(search("state:failed error:E1 args.to:1"), "search_failed"),
    "search_archive": sent(search("state:completed ended:<1h"), "search_archive"),
    "cancel": sent(STORE.job_commands.cancel([AN_ID, JobId(1)], BY), "cancel"),
    "revoke": sent(STORE.job_commands.revoke([AN_ID, JobId(1)], BY), "revoke"),
    "hold": sent(STORE.job_commands.hold([AN_ID], BY), "hold"),
    "resume": sent(STORE.job_commands.resume([AN_ID], BY), "resume"),
    "retry": sent(STORE.job_commands.retry([AN_ID], BY), "retry"),
    "discard": sent(STORE.job_commands.discard([AN_ID], BY), "discard"),
    "prune_failed": sent(STORE.maintenance.maintain(), "prune_failed"),
    "prune_keys": sent(STORE.maintenance.maintain(), "prune_keys"),
    "prune_items": Query(
        "prune_items", {"day": datetime.now(UTC).date(), "after": 0, "count": 10_000}
    ),
    "next_tick": sent(STORE.ticks.fire(), "next_tick"),
    "lock_due_schedules": sent(STORE.ticks.fire(), "lock_due_schedules"),
    "lock_due_schedules, above a floor": sent(
        STORE.ticks.fire(floor=NOW - MINUTE), "lock_due_schedules"
    ),
    "live_jobs": sent(STORE.ticks.fire(), "live_jobs"),
    "fire": sent(STORE.ticks.fire(), "fire"),
    "fire, a backfill": sent(STORE.ticks.backfill("s-7", [NOW - MINUTE]), "fire"),
    "lock_schedules": sent(STORE.schedules.pause("s-7", BY), "lock_schedules"),
    "declared_schedules": sent(
        STORE.schedules.declare("shop", (1,), NEW_SCHEDULES), "declared_schedules"
    ),
    "write_schedules": sent(
        STORE.schedules.declare("shop", (1,), NEW_SCHEDULES), "write_schedules"
    ),
    "set_schedule_state": sent(STORE.schedules.pause("s-7", BY), "set_schedule_state"),
    "retire_schedules": sent(STORE.schedules.declare("shop", (1,), []), "retire_schedules"),
    "confirm_schedules": Query("confirm_schedules", {"names": ["s-7"], "program_version": [1]}),
    "delete_schedule": Query("delete_schedule", {"name": "s-7"}),
    "schedules": sent(STORE.schedules.list(), "schedules"),
    "ticks": sent(STORE.ticks.list("s-7"), "ticks"),
    "prune_ticks": sent(STORE.maintenance.maintain(), "prune_ticks"),
    "find_token": sent(STORE.tokens.find("ab" * 32), "find_token"),
    "list_tokens": sent(STORE.tokens.list(active=True), "list_tokens"),
    "touch_tokens": sent(STORE.tokens.touch([1, 2]), "touch_tokens"),
    "set_token_quotas": sent(STORE.tokens.set_quotas(1, {"live_jobs": 1}, BY), "set_token_quotas"),
    "free_key": sent(STORE.job_commands.free_key("send", "k", BY), "free_key"),
    "free_orphaned_key": sent(
        STORE.job_commands.free_key("send", "k", BY),
        "free_orphaned_key",
        free_key=[{"job_id": 1, "freed": False}],
    ),
    "notice_test": sent(STORE.notices.test("ops", BY), "notice_test"),
    "notice_error": sent(STORE.notices.error([7, 20_000]), "notice_error"),
    "revoke_tokens": sent(STORE.tokens.revoke([1, 2], BY), "revoke_tokens"),
    "find_session": sent(STORE.sign_ins.find("ab" * 32), "find_session"),
    "list_sessions": sent(STORE.sign_ins.list(active=True), "list_sessions"),
    "touch_session": sent(STORE.sign_ins.touch(1), "touch_session"),
    "end_sessions": sent(STORE.sign_ins.end([1], BY, action="session.revoke"), "end_sessions"),
    "use_code": sent(STORE.sign_ins.use_code("ab" * 32), "use_code"),
    "prune_sessions": sent(STORE.maintenance.maintain(), "prune_sessions"),
    "prune_codes": sent(STORE.maintenance.maintain(), "prune_codes"),
    "lock_idempotency_key": sent(
        STORE.tokens.once("ada", "k", "ab", nothing()), "lock_idempotency_key"
    ),
    "store_response": sent(STORE.tokens.once("ada", "k", "ab", nothing()), "store_response"),
    "prune_answers": sent(STORE.maintenance.maintain(), "prune_answers"),
    "prune_rollups": sent(STORE.maintenance.maintain(), "prune_rollups"),
    "rollup_minute": sent(STORE.stats.roll_up(), "rollup_minute"),
    "stats": sent(STORE.stats.over_time(queue="mail"), "stats"),
    "totals": sent(STORE.stats.totals(NOW - MINUTE), "totals"),
    "lateness": sent(STORE.overview.lateness(), "lateness"),
    "recent_ticks": Query(
        "recent_ticks", {"within": MINUTE, "schedules": 1000, "ticks": 60, "now": None}
    ),
    "overview_counts": sent(STORE.overview.pulse(), "overview_counts"),
    "count_retrying": sent(STORE.overview.retrying(["mail", "bulk"]), "count_retrying"),
    "hourly_failures": sent(STORE.overview.hours(["mail", "bulk"]), "hourly_failures"),
    "recent_completions": sent(STORE.overview.completions(count=10), "recent_completions"),
    "late_schedules": sent(STORE.overview.late_schedules(MINUTE, count=3), "late_schedules"),
    "known_queues": sent(STORE.stats.depths(), "known_queues"),
    "usage": sent(STORE.stats.usage(["mail", "b*"], most=1000), "usage"),
    "count_running": sent(STORE.stats.depths(), "count_running"),
    "queue_depths": sent(STORE.stats.depths(), "queue_depths"),
    "failed_groups": sent(STORE.stats.failed_groups(count=50), "failed_groups"),
    "failed_groups_of": sent(STORE.stats.failed_groups(queue="mail", count=50), "failed_groups_of"),
    "failed_hours": Query(
        "failed_hours",
        {"tasks": ["t"], "signatures": ["E"], "queue": None, "most": 1000, "now": None},
    ),
    "explain_job": Query("explain_job", {"id": 20_000, "most": 10_001, "now": None}),
    "prune_workers": sent(STORE.maintenance.maintain(), "prune_workers"),
    "move": sent(STORE.job_commands.move([AN_ID], Changes(queue="bulk"), BY), "move"),
    "lock_editable": sent(
        STORE.job_edits.edit([AN_ID], JobChanges(priority=9), BY, sealing=NOT_SEALING),
        "lock_editable",
    ),
    "edit": Query(
        "edit",
        {
            "ids": [20_000],
            "args": [None],
            "priority": 9,
            "run_at": None,
            "max_attempts": None,
            "meta": None,
            "now": None,
        },
    ),
    "ended_jobs": sent(
        STORE.job_edits.rerun([AN_ID], BY, args=None, keep_key=False, sealing=NOT_SEALING),
        "ended_jobs",
    ),
    "delete": sent(STORE.job_commands.delete([AN_ID, JobId(1_000_001)], BY), "delete"),
    "freeze_ticks": sent(STORE.operations.start_backfill(A_BACKFILL, BY), "freeze_ticks"),
    "begin_operation": sent(operation(OperationKind.RETRY), "begin_operation"),
    "next_operation": sent(STORE.operations.next_due(), "next_operation"),
    "due_operation": sent(STORE.operations.run_chunk(), "due_operation"),
    "operation_items": sent(STORE.operations.run_chunk(), "operation_items"),
    "record_chunk": sent(STORE.operations.run_chunk(), "record_chunk"),
    "postpone_operation": Query(
        "postpone_operation", {"id": 7, "chunk_limit": 1, "pause": MINUTE, "now": None}
    ),
    "lock_operation": sent(STORE.operations.steer(7, OperationState.PAUSED, BY), "lock_operation"),
    "set_operation_state": sent(
        STORE.operations.steer(7, OperationState.PAUSED, BY), "set_operation_state"
    ),
    "operations": sent(STORE.operations.list(), "operations"),
    "operations, of some queues": sent(STORE.operations.list(granted=["mail%"]), "operations"),
    "operations_of": sent(STORE.operations.of_job(AN_ID), "operations_of"),
    "prune_operation_items": sent(STORE.maintenance.maintain(), "prune_operation_items"),
    "prune_operations": sent(STORE.maintenance.maintain(), "prune_operations"),
    "erase_live": sent(STORE.erasures.run_chunk(AN_ERASURE), "erase_live"),
    "erase_ended": sent(STORE.erasures.run_chunk(AN_ERASURE), "erase_ended"),
    "erase_left": sent(STORE.erasures.run_chunk(AN_ERASURE), "erase_left"),
    "erase_ready": sent(STORE.erasures.run_chunk(A_WAIT), "erase_ready"),
    "record_erasure": sent(STORE.erasures.run_chunk(AN_ERASURE), "record_erasure"),
}

# What freezes the members of an operation: once for each, from the beginning of a table on.
FREEZING: Mapping[str, Query] = {
    "freeze_failed": sent(operation(OperationKind.RETRY, task="send"), "freeze_failed"),
    "freeze_live": sent(operation(OperationKind.CANCEL, queue="mail"), "freeze_live"),
    "freeze_archive": sent(
        operation(OperationKind.DELETE, state=State.COMPLETED), "freeze_archive"
    ),
    "freeze_live, by a selector": sent(
        operation(OperationKind.CANCEL, selector="state:retrying,expired tag:vip"), "freeze_live"
    ),
}

# What runs inside a caller's transaction, on a connection with the caller's settings.
CALLERS: Mapping[str, Query] = {
    "enqueue_alike": sent(STORE.jobs.enqueue(jobs(1, keyed=False)), "enqueue_alike"),
    "enqueue": sent(STORE.jobs.enqueue(jobs(BATCH, keyed=False)), "enqueue"),
    "enqueue_keyed": sent(STORE.jobs.enqueue(jobs(1, keyed=True)), "enqueue_keyed"),
    "may_choose_ids": sent(STORE.jobs.enqueue(jobs(1, keyed=True)), "may_choose_ids"),
    "take_keys": by_taken_keys(1, "take_keys"),
    "enqueue_taken": by_taken_keys(1, "enqueue_taken"),
    "settle": sent(_within(Succeeded({"rows": 1})), "settle"),
    "settle, a failure": sent(_within(FAILED), "settle"),
    "check_lease": OWN["check_lease"],
    "guard": OWN["guard"],
    "progress": OWN["progress"],
    "await_key": OWN["await_key"],
}
