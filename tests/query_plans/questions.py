"""The hot statements with realistic parameters, taken from the operations that send them."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from tenure._model.audit import By
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
from tenure._model.outcome import Failed, Loss, Lost, Released, SettleRequest, Succeeded
from tenure._model.queue import Floor, Lane
from tenure._model.schedule import NewSchedule, Timing
from tenure._rules import lifecycle, selector_syntax
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
    said = lifecycle.settle(outcome, attempt=1, limit=3, backoff=MINUTE)
    return [SettleRequest(lease, said) for lease in leases(count)]


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
            "set_missed_most",
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
    "zone": "UTC",
    "task": "send",
    "queue": "mail",
    "args": {},
    "priority": 5,
    "missed": "latest",
    "missed_within": MINUTE,
    "missed_most": 9,
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
    "most": None,
    "outcomes": {},
    "actor": "ada",
    "source": "cli",
    "reason": None,
    "created_at": NOW,
    "started_at": NOW,
    "ended_at": None,
    "next_at": NOW,
}


A_BACKFILL = NewBackfill(
    schedule="s-7",
    queue="mail",
    since=NOW - 100 * MINUTE,
    until=NOW,
    fire_ats=[NOW - n * MINUTE for n in range(100)],
    rate=500,
)


def search(said: str) -> Op[Any]:
    """A search for what is said."""
    return STORE.search(selector_syntax.parse(said), count=50, window=100_000)


def operation(kind: OperationKind, **said: Any) -> Op[Any]:
    """The start of an operation on what is said."""
    return STORE.start_operation(NewOperation(kind=kind, filter=Filter(**said), rate=500), BY)


# Answers that lead an operation on to its later statements.
_ANSWERS: Mapping[str, list[Row]] = {
    "check_lease": [{"held": True, "isolation": "read committed", "filed_on": date(2030, 1, 1)}],
    "lock_queues": [{"name": "mail", "adopted": False, "now": NOW}],
    "rescue": [{"id": None, "found": 0, "now": FLOOR.run_at}],
    "await_answer": [{"digest": "ab", "answer": None}],
    "days": [{"day": datetime.now(UTC).date()}],
    "clock": [{"now": NOW}],
    "newest_id": [{"id": 3_000_000}],
    "lock_rollups": [
        {
            "closed_to": NOW,
            **dict.fromkeys(["final_to", "marked_to", "folded_to"], NOW - MINUTE),
            "whole": True,
        }
    ],
    "folded": [{"now": NOW, "folded_to": NOW, "final_to": NOW}],
    "known_queues": [{"name": "bulk"}, {"name": "mail"}],
    "next_tick": [{"now": NOW, "next_at": NOW}],
    "due": [{**A_SCHEDULE, "name": f"s-{n}", "overlap": "skip"} for n in range(100)],
    "declared": [{**A_SCHEDULE, "next_at": NOW + MINUTE, "program": "shop"}],
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


def _within(outcome: Outcome) -> Op[None]:
    [one] = ended(1, outcome)
    return STORE.settle_within(one.lease, one.settlement)


BATCH = 100
FAILED = Failed(ERROR)
AN_ID = JobId(20_000)

# What our own connections send, by the name of the case.
OWN: Mapping[str, Query] = {
    "enqueue": sent(STORE.enqueue(jobs(BATCH, keyed=False)), "enqueue"),
    "enqueue_alike": sent(STORE.enqueue(jobs(1, keyed=False)), "enqueue_alike"),
    "enqueue_keyed": sent(STORE.enqueue(jobs(BATCH, keyed=True)), "enqueue_keyed"),
    "claim": sent(STORE.claim(LANES, count=BATCH, worker=WORKER), "claim"),
    "claim_limited": sent(
        STORE.claim(LANES, count=BATCH, worker=WORKER, limited=True), "claim_limited"
    ),
    "confirm": sent(STORE.confirm(leases(BATCH)), "confirm"),
    "lock_queues": sent(
        STORE.claim(LANES, count=BATCH, worker=WORKER, limited=True), "lock_queues"
    ),
    "adopt": sent(STORE.claim(LANES, count=BATCH, worker=WORKER, limited=True), "adopt"),
    "gate": sent(STORE.claim(LANES, count=BATCH, worker=WORKER), "gate"),
    "renew": sent(STORE.renew(leases(BATCH)), "renew"),
    "overdue": sent(STORE.overdue(MINUTE), "overdue"),
    "suspect_waits": sent(STORE.suspect_waits(["mail", "bulk"], 3), "suspect_waits"),
    "locked": sent(STORE.locked(["mail", "bulk"], MINUTE, count=3), "locked"),
    "notify_queue": sent(STORE.notify_queue(), "notify_queue"),
    "wait": sent(STORE.wait(AN_ID), "wait"),
    "holding": sent(STORE.renew(leases(BATCH)), "holding"),
    "progress": sent(STORE.progress(leases(1)[0], done=3, items={"k": 1, "l": 2}), "progress"),
    "complete": sent(STORE.settle(ended(BATCH, Succeeded({"rows": 1}))), "complete"),
    "settle": sent(STORE.settle(ended(BATCH, FAILED)), "settle"),
    "settle, to release": sent(STORE.settle(ended(BATCH, Released())), "settle"),
    "settle, deaths": sent(STORE.settle(ended(BATCH, Lost(Loss.SHARED, ERROR))), "settle"),
    "settle, one": sent(STORE.settle(ended(1, FAILED)), "settle"),
    "repeat": sent(STORE.settle(ended(BATCH, FAILED)), "repeat"),
    "await_key": Query("await_key", {"task": "send", "key": "key-7"}),
    "rescue": sent(STORE.rescue(), "rescue"),
    "rescue, but what is kept": sent(STORE.rescue(kept=leases(BATCH)), "rescue"),
    "rescue, of queues": sent(
        STORE.claim(LANES, count=BATCH, worker=WORKER, limited=True), "rescue"
    ),
    "check_lease": sent(STORE.check(leases(1)[0]), "check_lease"),
    "guard": sent(STORE.guard(leases(1)[0]), "guard"),
    "next_due": sent(STORE.next_due(LANES), "next_due"),
    "queue_names": sent(STORE.queue_names(), "queue_names"),
    "get": sent(STORE.get(AN_ID), "get"),
    "attempts": sent(STORE.attempts(AN_ID), "attempts"),
    "last_attempts": sent(STORE.last_attempts([AN_ID] * 50), "last_attempts"),
    "items": sent(STORE.items(AN_ID), "items"),
    "list_live": sent(STORE.list(State.QUEUED, queue="mail"), "list_live"),
    "list_failed": sent(STORE.list(State.FAILED), "list_failed"),
    "list_failed, of a task": sent(STORE.list(State.FAILED, task="send"), "list_failed"),
    "stretch": sent(STORE.list(State.COMPLETED), "stretch"),
    "list_running": sent(STORE.list(State.RUNNING), "list_running"),
    "list_archive": sent(STORE.list(State.COMPLETED, task="send"), "list_archive"),
    "list_audit": sent(STORE.audit("job:7"), "list_audit"),
    "search_audit": sent(
        STORE.search_audit(actor="ada"), "search_audit", newest_audit=[{"id": 9_000}]
    ),
    "newest_audit": sent(STORE.search_audit(), "newest_audit"),
    "leases": sent(STORE.leases(queue="mail"), "leases"),
    "queue_minutes": sent(STORE.throughput(["mail", "bulk"]), "queue_minutes"),
    "last_ticks": sent(STORE.recent_runs(["s-7", "s-8"]), "last_ticks"),
    "states": Query("states", {"ids": [20_000, 1_000_001, 2_000_001]}),
    "clock": sent(search("state:queued"), "clock"),
    "search_queued": sent(search("state:due task:send"), "search_queued"),
    "search_queued, by errors": sent(search("state:retrying error:E"), "search_queued"),
    "search_running": sent(search("state:running"), "search_running"),
    "search_running, what is over": sent(search("state:expired queue:mail"), "search_running"),
    "search_failed": sent(search("state:failed error:E1 args.to:1"), "search_failed"),
    "search_archive": sent(search("state:completed ended:<1h"), "search_archive"),
    "cancel": sent(STORE.cancel([AN_ID, JobId(1)], BY), "cancel"),
    "revoke": sent(STORE.revoke([AN_ID, JobId(1)], BY), "revoke"),
    "hold": sent(STORE.hold([AN_ID], BY), "hold"),
    "resume": sent(STORE.resume([AN_ID], BY), "resume"),
    "retry": sent(STORE.retry([AN_ID], BY), "retry"),
    "discard": sent(STORE.discard([AN_ID], BY), "discard"),
    "prune_failed": sent(STORE.maintain(), "prune_failed"),
    "prune_keys": sent(STORE.maintain(), "prune_keys"),
    "prune_items": Query(
        "prune_items", {"day": datetime.now(UTC).date(), "after": 0, "count": 10_000}
    ),
    "next_tick": sent(STORE.fire(), "next_tick"),
    "due": sent(STORE.fire(), "due"),
    "due, above a floor": sent(STORE.fire(floor=NOW - MINUTE), "due"),
    "live": sent(STORE.fire(), "live"),
    "fire": sent(STORE.fire(), "fire"),
    "fire, a backfill": sent(STORE._backfill("s-7", [NOW - MINUTE]), "fire"),
    "lock_schedules": sent(STORE.pause_schedule("s-7", BY), "lock_schedules"),
    "declared": sent(STORE.declare("shop", (1,), NEW_SCHEDULES), "declared"),
    "write_schedules": sent(STORE.declare("shop", (1,), NEW_SCHEDULES), "write_schedules"),
    "steer_schedule": sent(STORE.pause_schedule("s-7", BY), "steer_schedule"),
    "retire": sent(STORE.declare("shop", (1,), []), "retire"),
    "vouch": Query("vouch", {"names": ["s-7"], "program_version": [1]}),
    "delete_schedule": Query("delete_schedule", {"name": "s-7"}),
    "schedules": sent(STORE.schedules(), "schedules"),
    "ticks": sent(STORE.ticks("s-7"), "ticks"),
    "prune_ticks": sent(STORE.maintain(), "prune_ticks"),
    "find_token": sent(STORE.find_token("ab" * 32), "find_token"),
    "list_tokens": sent(STORE.tokens(active=True), "list_tokens"),
    "touch_tokens": sent(STORE.touch_tokens([1, 2]), "touch_tokens"),
    "revoke_tokens": sent(STORE.revoke_tokens([1, 2], BY), "revoke_tokens"),
    "await_answer": sent(STORE.once("ada", "k", "ab", nothing()), "await_answer"),
    "keep_answer": sent(STORE.once("ada", "k", "ab", nothing()), "keep_answer"),
    "prune_answers": sent(STORE.maintain(), "prune_answers"),
    "prune_rollups": sent(STORE.maintain(), "prune_rollups"),
    "fold": sent(STORE.roll_up(), "fold"),
    "stats": sent(STORE.stats(queue="mail"), "stats"),
    "totals": sent(STORE.totals(NOW - MINUTE), "totals"),
    "lateness": sent(STORE.lateness(), "lateness"),
    "recent_ticks": Query(
        "recent_ticks", {"within": MINUTE, "schedules": 1000, "ticks": 60, "now": None}
    ),
    "pulse": sent(STORE.pulse(), "pulse"),
    "retrying": sent(STORE.retrying(["mail", "bulk"]), "retrying"),
    "hours": sent(STORE.hours(["mail", "bulk"]), "hours"),
    "completions": sent(STORE.completions(count=10), "completions"),
    "late_schedules": sent(STORE.late_schedules(MINUTE, count=3), "late_schedules"),
    "known_queues": sent(STORE.depths(), "known_queues"),
    "running": sent(STORE.depths(), "running"),
    "depths": sent(STORE.depths(), "depths"),
    "failed_groups": sent(STORE.failed_groups(count=50), "failed_groups"),
    "failed_groups_of": sent(STORE.failed_groups(queue="mail", count=50), "failed_groups_of"),
    "failed_hours": Query(
        "failed_hours",
        {"tasks": ["t"], "signatures": ["E"], "queue": None, "most": 1000, "now": None},
    ),
    "standing": Query("standing", {"id": 20_000, "most": 10_001, "now": None}),
    "prune_workers": sent(STORE.maintain(), "prune_workers"),
    "move": sent(STORE.move([AN_ID], Changes(queue="bulk"), BY), "move"),
    "delete": sent(STORE.delete([AN_ID, JobId(1_000_001)], BY), "delete"),
    "freeze_ticks": sent(STORE.start_backfill(A_BACKFILL, BY), "freeze_ticks"),
    "admit_operation": sent(operation(OperationKind.RETRY), "admit_operation"),
    "next_operation": sent(STORE.next_operation(), "next_operation"),
    "due_operation": sent(STORE.run_chunk(), "due_operation"),
    "operation_items": sent(STORE.run_chunk(), "operation_items"),
    "advance": sent(STORE.run_chunk(), "advance"),
    "put_off": Query("put_off", {"id": 7, "most": 1, "pause": MINUTE, "now": None}),
    "lock_operation": sent(STORE.steer_operation(7, OperationState.PAUSED, BY), "lock_operation"),
    "steer_operation": sent(STORE.steer_operation(7, OperationState.PAUSED, BY), "steer_operation"),
    "operations": sent(STORE.operations(), "operations"),
    "operations_of": sent(STORE.operations_of(AN_ID), "operations_of"),
    "prune_operation_items": sent(STORE.maintain(), "prune_operation_items"),
    "prune_operations": sent(STORE.maintain(), "prune_operations"),
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
    "enqueue_alike": sent(STORE.enqueue(jobs(1, keyed=False)), "enqueue_alike"),
    "enqueue": sent(STORE.enqueue(jobs(BATCH, keyed=False)), "enqueue"),
    "enqueue_keyed": sent(STORE.enqueue(jobs(1, keyed=True)), "enqueue_keyed"),
    "settle": sent(_within(Succeeded({"rows": 1})), "settle"),
    "settle, a failure": sent(_within(FAILED), "settle"),
    "check_lease": OWN["check_lease"],
    "guard": OWN["guard"],
    "progress": OWN["progress"],
    "await_key": OWN["await_key"],
}
