"""Erasure: nothing of a person is left in any column, and nothing of another one is touched."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from support.canaries import columns, columns_with, contents
from support.race_helpers import BROKEN, claim, done_by_a_worker, ended, leases, state
from tenure._model.job import NewJob
from tenure._model.lease import SettleStatus
from tenure._model.outcome import Failed, Succeeded
from tenure._model.schedule import NewSchedule, Timing
from tenure._rules import erasure
from tenure.admin import By, JobRequest, parse_selector
from tenure.config import FOREVER
from tenure.errors import Error, InvalidValue
from tenure.types import ItemOutcome, OperationKind, OperationState

if TYPE_CHECKING:
    from support.store import Database
    from tenure._model.ids import JobId
    from tenure._model.lease import Lease
    from tenure.admin import Admin
    from tenure.types import EnqueueResult

ANA = By("ana", source="suite", reason="ticket 12")
SELECTOR = "tag:customer:{0}"
# Columns that hold no words about a job. Another one that is added belongs here, or is planted
# below and then erased.
NOT_ABOUT_A_JOB = {
    *{
        ("api_token", name)
        for name in (
            *("created_by", "hash", "hint", "name", "queues", "revoked_by", "tasks", "quotas"),
            "page_key",
        )
    },
    *{("queue", name) for name in ("name", "paused_by", "paused_reason", "quotas")},
    *{("rollup_minute", name) for name in ("queue", "task")},
    *{("setting", name) for name in ("changed_by", "name", "value")},
    # A group's key is a digest. A notice that waits names jobs: its text is made when it is sent.
    *{("notice_group", name) for name in ("rule", "key")},
    *{
        ("notice_rule", name)
        for name in (
            *("name", "event", "queue", "task", "url", "format", "secret", "program"),
            "created_by",
        )
    },
    *{
        ("worker", name)
        for name in ("host", "language", "listed", "meta", "name", "queues", "state", "version")
    },
    ("api_token", "scopes"),
    *{
        ("dashboard_session", name)
        for name in (
            *("address", "ended_by", "hash", "name", "provider", "queues", "scopes"),
            "user_agent",
        )
    },
    ("sign_in_code", "hash"),
    ("schema_version", "name"),
    # Names that a program or an operator gives: of tasks, queues, states, actors.
    *{(table, "queue") for table in ("attempt", "job", "job_archive", "job_failed", "schedule")},
    *{(table, "task") for table in ("attempt", "job", "job_archive", "job_failed", "job_key")},
    *{(table, "state") for table in ("job", "job_archive", "operation")},
    *{(table, "done_reason") for table in ("job_archive", "job_failed")},
    *{("audit", name) for name in ("action", "actor", "address", "source")},
    *{("operation", name) for name in ("actor", "changes", "kind", "outcomes", "source")},
    *{
        ("schedule", name)
        for name in (
            *("cron", "missed", "overlap", "paused_by", "program", "set_missed", "task"),
            "timezone",
        )
    },
    *{("schedule_tick", name) for name in ("outcome", "reason")},
    ("attempt", "outcome"),
    ("idempotency", "actor"),
    ("idempotency", "digest"),
    ("idempotency", "answer"),
    ("operation_item", "outcome"),
}


def person(name: str, **fields: Any) -> NewJob:
    meta = {"tags": [f"customer:{name}"], "note": name}
    return NewJob("work", args={"customer_id": name}, meta=meta, **fields)


async def planted(db: Database, admin: Admin, name: str) -> dict[str, Any]:
    """A person's words in every table, by the ways in which they come there."""
    store = db.real
    by = By("ana", source="suite", reason=f"about {name}")
    wordy = Failed(
        Error(f"Of{name}", f"no {name}", trace=f"at {name}", signature=f"sign {name}"),
        retryable=False,
    )
    jobs = [
        person(name, queue=place + name[0], key=f"key-{place}-{name}", key_for=timedelta(days=1))
        for place in ("done", "dead", "runs", "waits")
    ]
    await db.run(store.schedules.create(_schedule(name), by))
    done, dead, runs, waits = [one.id for one in await db.run(store.jobs.enqueue(jobs))]
    held: dict[str, Lease] = {}
    for place in ("done", "dead", "runs"):
        [held[place]] = leases(await db.run(claim(store, place + name[0])))
        reported: dict[str, Any] = {"cursor": name, "message": name, "items": {f"i-{name}": name}}
        await db.run(store.leases.progress(held[place], **reported))
    settle = store.settlement.settle
    await db.run(settle([ended(held["done"], Succeeded(name)), ended(held["dead"], wordy)]))
    admin.jobs.hold([waits], by)
    request = JobRequest(task="work", args={"customer_id": name}, tags=[f"customer:{name}"])
    admin.jobs.enqueue_many([request], by, idempotency_key=f"once-{name}")
    admin.operations.start("cancel", f"tag:customer:{name} queue:none", by)
    admin.schedules.backfill(f"schedule-{name}", db.clock() - timedelta(hours=2), db.clock(), by)
    await db.fetch(
        "INSERT INTO tenure.schedule_tick VALUES ($1, now(), now(), NULL, 'skipped', 'paused')",
        f"schedule-{name}",
    )
    # Written where a settle was late, where a handler logged, where an operator paused.
    text = json.dumps(name)
    ids = [done, dead]
    await db.fetch(
        "UPDATE tenure.attempt SET log = $1, refused_result = $2::jsonb WHERE job_id = ANY ($3)",
        *(name, text, ids),
    )
    await db.fetch(
        "UPDATE tenure.audit SET before = $1 WHERE reason = $2 AND target !~ '^operation:'",
        *(text, by.reason),
    )
    await db.fetch(
        "UPDATE tenure.schedule SET paused_reason = $1 WHERE name = $2", name, f"schedule-{name}"
    )
    return {"done": done, "dead": dead, "runs": runs, "waits": waits, "lease": held["runs"]}


def _schedule(name: str) -> NewSchedule:
    timing = Timing(every=timedelta(hours=1))
    return NewSchedule(name=f"schedule-{name}", timing=timing, job=person(name))


ERASED, OTHER = "zebra7041", "quagga8052"


async def test_nothing_of_a_person_is_left_and_nothing_else_is_touched(
    db: Database, admin: Admin
) -> None:
    other = await planted(db, admin, OTHER)
    ours = await planted(db, admin, ERASED)
    await done_by_a_worker(db)
    assert set(columns(db.url)) - NOT_ABOUT_A_JOB == columns_with(db.url, ERASED)
    before = contents(db.url)
    rehearsed = admin.erase(SELECTOR.format(ERASED), ANA, dry_run=True)
    assert contents(db.url) == before
    # Sequences are not taken back.
    started = admin.erase(SELECTOR.format(ERASED), ANA)
    assert started.rows == rehearsed.rows
    counts = {name: len([r for r in rows if ERASED in r]) for name, rows in before.items()}
    assert started.rows == {name: counts[name] for name in started.rows}
    assert {name for name, count in counts.items() if count} == set(started.rows)
    await waits_for(db, admin, started.operation.id, 1)
    assert await state(db, ours["runs"]) == "running"
    assert await db.run(db.real.leases.renew([ours["lease"]]))
    await db.run(db.real.settlement.settle([ended(ours["lease"], BROKEN)]))
    await done_by_a_worker(db)

    assert columns_with(db.url, ERASED) == set()
    after = contents(db.url)
    for name, rows in before.items():
        untouched = [row for row in rows if ERASED not in row]
        if name in {"audit", "attempt", "operation", "operation_item"}:
            assert set(untouched) <= set(after[name])
        else:
            assert untouched == after[name], name
    assert len(after["attempt"]) == len(before["attempt"]) + 1
    assert await state(db, other["waits"]) == "queued"
    row = admin.operations.get(started.operation.id)
    assert row is not None
    assert (row.kind, row.state, row.waiting) == (OperationKind.ERASE, OperationState.DONE, 0)
    assert row.outcomes == {ItemOutcome.ERASED: row.total}


async def waits_for(db: Database, admin: Admin, operation_id: int, count: int) -> None:
    """Run chunks until every job had its turn; this many are waited for."""
    async with asyncio.timeout(10):
        while (row := admin.operations.get(operation_id)) and row.done < row.total:
            await db.run(db.real.operations.run_chunk())
            await asyncio.sleep(0.01)
    assert row is not None
    assert (row.state, row.waiting) == (OperationState.RUNNING, count)


async def test_the_request_is_kept_without_the_persons_name(db: Database, admin: Admin) -> None:
    await db.run(db.real.jobs.enqueue([person(ERASED, queue="mail")]))
    selector = f"queue:mail tag:customer:{ERASED} args.customer_id:{ERASED}"
    started = admin.erase(selector, ANA)
    assert started.operation.total == 1
    assert started.operation.filter.selector == "queue:mail tag:… args.customer_id:…"
    [audited] = admin.audit.list(f"operation:{started.operation.id}")
    assert (audited.actor, audited.reason) == ("ana", "ticket 12")
    digest = audited.after["digest"]
    assert erasure.is_digest_of(digest, parse_selector(selector))
    assert not erasure.is_digest_of(digest, parse_selector("tag:customer:8"))
    await done_by_a_worker(db)
    assert columns_with(db.url, ERASED) == set()


@pytest.mark.parametrize("selector", [f"key:key-{ERASED}", f"args.customer_id:{ERASED}", "id:{}"])
async def test_key_argument_and_id_select(db: Database, admin: Admin, selector: str) -> None:
    new = [person(ERASED, key=f"key-{ERASED}"), person(OTHER, key=f"key-{OTHER}")]
    first, second = [one.id for one in await db.run(db.real.jobs.enqueue(new))]
    started = await admin.aerase(selector.format(first), ANA)
    assert started.operation.total == 1
    await done_by_a_worker(db)
    assert (await state(db, first), await state(db, second)) == (None, "queued")
    assert columns_with(db.url, ERASED) == set()
    assert columns_with(db.url, OTHER) >= {("job", "args"), ("job_key", "key")}


async def test_a_key_kept_forever_is_erased_with_its_job(db: Database, admin: Admin) -> None:
    [made] = await db.run(db.real.jobs.enqueue([person(ERASED, key=ERASED, key_for=FOREVER)]))
    admin.jobs.cancel([made.id], ANA)
    admin.erase(SELECTOR.format(ERASED), ANA)
    await done_by_a_worker(db)
    assert await db.fetch("SELECT FROM tenure.job_key") == []


async def test_a_key_that_outlived_its_job_is_erased(db: Database, admin: Admin) -> None:
    await db.fetch("INSERT INTO tenure.job_key VALUES ('work', $1, 4711, 1, now())", ERASED)
    assert admin.erase(f"key:{ERASED}", ANA).rows["job_key"] == 1
    assert columns_with(db.url, ERASED) == set()


async def test_a_response_for_others_too_is_kept(db: Database, admin: Admin) -> None:
    requests = [
        JobRequest(task="work", args={}, tags=[f"customer:{name}"]) for name in (ERASED, OTHER)
    ]
    first = admin.jobs.enqueue_many(requests, ANA, idempotency_key="both")
    assert admin.erase(SELECTOR.format(ERASED), ANA).rows["idempotency"] == 0
    await done_by_a_worker(db)
    again = admin.jobs.enqueue_many(requests, ANA, idempotency_key="both")
    assert (again.repeated, again.jobs) == (True, first.jobs)


async def test_a_late_settle_stores_nothing_after_the_erasure(db: Database, admin: Admin) -> None:
    """A worker that lost its lease comes back with a result when its job is erased."""
    await db.run(db.real.jobs.enqueue([person(ERASED, queue="mail")]))
    [lease] = leases(await db.run(claim(db.real, "mail")))
    admin.jobs.revoke([lease.job_id], ANA)
    admin.erase(SELECTOR.format(ERASED), ANA)
    await done_by_a_worker(db)
    late = ended(lease, Succeeded(ERASED))
    [settled] = await db.run(db.real.settlement.settle([late]))
    assert settled.answer is not SettleStatus.SETTLED
    assert columns_with(db.url, ERASED) == set()


async def test_a_locked_job_is_erased_after_the_lock_and_holds_up_no_other(
    db: Database, admin: Admin
) -> None:
    new = [person(ERASED) for _ in range(3)]
    ids = [one.id for one in await db.run(db.real.jobs.enqueue(new))]
    started = admin.erase(SELECTOR.format(ERASED), ANA)
    party = await db.party("another")
    async with party.transaction() as held:
        assert await held.run(db.real.job_commands.hold([ids[0]], ANA)) == [True]
        await waits_for(db, admin, started.operation.id, 1)
        assert [await state(db, one) for one in ids] == ["queued", None, None]
    await done_by_a_worker(db)
    assert columns_with(db.url, ERASED) == set()


async def test_a_job_that_moves_between_the_tables_meanwhile_is_not_missed(
    db: Database, admin: Admin
) -> None:
    """A retry takes the dead letter away after the chunk has looked among the live jobs."""
    [job] = await db.run(db.real.jobs.enqueue([person(ERASED, max_attempts=1)]))
    [lease] = leases(await db.run(claim(db.real)))
    await db.run(db.real.settlement.settle([ended(lease, BROKEN)]))
    started = admin.erase(SELECTOR.format(ERASED), ANA)
    chunk = db.real.operations.run_chunk()
    await db.run(_with_retry(chunk, admin, job))
    row = admin.operations.get(started.operation.id)
    assert row is not None
    assert (row.waiting, await state(db, job.id)) == (1, "queued")
    await done_by_a_worker(db)
    assert columns_with(db.url, ERASED) == set()


def _with_retry(op: Any, admin: Admin, job: EnqueueResult) -> Any:
    """The same operation, with a retry on another connection before the ended jobs are erased."""
    answer: Any = None
    while True:
        try:
            step = op.send(answer)
        except StopIteration as end:
            return end.value
        if getattr(step, "name", "") == "erase_ended":
            admin.jobs.retry([job.id], ANA)
        answer = yield step


@pytest.mark.parametrize(
    ("selector", "reason", "why"),
    [
        ("", "ticket 1", "must have a tag, a key, an argument or an id"),
        ("queue:mail", "ticket 1", "must have a tag, a key, an argument or an id"),
        ("tag:a state:failed", "ticket 1", "must not have state:"),
        ("tag:a", None, "an erasure must have a reason"),
        ("tag:a", " ", "an erasure must have a reason"),
        ("args.mail:jane@example.org", "asked by jane@example.org", "must not contain"),
    ],
)
def test_unclear_requests_are_refused(
    admin: Admin, selector: str, reason: str | None, why: str
) -> None:
    with pytest.raises(InvalidValue, match=why):
        admin.erase(selector, By("ana", reason=reason))
    assert admin.operations.list() == []


def test_an_erasure_is_not_started_as_another_operation(admin: Admin) -> None:
    with pytest.raises(InvalidValue, match=r"start it with admin\.erase"):
        admin.operations.start("erase", "tag:a", ANA)  # type: ignore[arg-type]  # To be refused.


async def test_it_is_paused_resumed_and_aborted_as_others(db: Database, admin: Admin) -> None:
    ids: list[JobId] = [one.id for one in await db.run(db.real.jobs.enqueue([person(ERASED)] * 3))]
    started = admin.erase(SELECTOR.format(ERASED), ANA, rate=2)
    assert await db.run(db.real.operations.run_chunk()) == 1
    assert admin.operations.pause(started.operation.id, ANA).state is OperationState.PAUSED
    assert await db.run(db.real.operations.run_chunk()) == 0
    assert admin.operations.resume(started.operation.id, ANA).state is OperationState.RUNNING
    assert await db.run(db.real.operations.run_chunk()) == 1
    assert admin.operations.abort(started.operation.id, ANA).state is OperationState.ABORTED
    assert await db.run(db.real.operations.run_chunk()) == 0
    assert [await state(db, one) for one in ids] == [None, None, "queued"]


async def test_arguments_in_the_audit_are_erased_also_after_their_job(
    db: Database, admin: Admin
) -> None:
    """The audit log has no retention, so it may outlive the job."""
    job = await admin.jobs.aenqueue("send", {"to": ERASED}, ANA)
    await admin.jobs.aedit([job.id], ANA, args={"to": f"{ERASED} again"})
    await admin.jobs.acancel([job.id], ANA)
    await admin.jobs.adelete([job.id], ANA)
    assert columns_with(db.url, ERASED) == {("audit", "before"), ("audit", "after")}
    await admin.aerase(f"id:{job.id}", ANA)
    await done_by_a_worker(db)
    assert columns_with(db.url, ERASED) == set()
