"""Many jobs by their tasks' names at once: all or none, and once per idempotency key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tenure.admin import By, JobRequest, Redactor
from tenure.errors import IdempotencyConflict, InvalidValue, PayloadError

if TYPE_CHECKING:
    from support.store import Database
    from tenure.admin import Admin

ANA = By("ana", source="suite", reason="a trial")


def mail(to: str = "Ada", **options: Any) -> JobRequest:
    return JobRequest(task="send", args={"to": to}, **options)


async def count(db: Database) -> int:
    return len(await db.fetch("SELECT id FROM tenure.job"))


async def test_they_are_answered_in_order_and_in_the_audit(db: Database, admin: Admin) -> None:
    answer = admin.jobs.enqueue_many([mail(), mail(key="k", queue="bulk"), mail(key="k")], ANA)
    assert [job.created for job in answer.jobs] == [True, True, False]
    assert not answer.repeated
    job = admin.jobs.get(answer.jobs[1].id)
    assert job is not None
    assert (job.queue, job.args, job.key) == ("bulk", {"to": "Ada"}, "k")
    [row] = admin.audit.list(f"job:{job.id}")
    assert (row.actor, row.action) == ("ana", "enqueue")
    assert await count(db) == 2


async def test_the_same_jobs_with_the_same_key_are_enqueued_once(
    db: Database, admin: Admin
) -> None:
    """Shows R36."""
    first = admin.jobs.enqueue_many([mail(), mail("Bob")], ANA, idempotency_key="order-7")
    again = await admin.jobs.aenqueue_many([mail(), mail("Bob")], ANA, idempotency_key="order-7")
    assert (again.jobs, again.repeated) == (first.jobs, True)
    with pytest.raises(IdempotencyConflict, match="use a new key"):
        admin.jobs.enqueue_many([mail("Eve")], ANA, idempotency_key="order-7")
    assert not admin.jobs.enqueue_many([mail()], By("bob"), idempotency_key="order-7").repeated
    assert await count(db) == 3


async def test_one_that_cannot_be_refuses_all(db: Database, admin: Admin) -> None:
    for wrong in (mail(queue="no queue"), JobRequest(task="send", args={"x": "\x00"})):
        with pytest.raises((InvalidValue, PayloadError)):
            admin.jobs.enqueue_many([mail(), wrong], ANA, idempotency_key="k")
    assert await count(db) == 0
    assert await db.fetch("SELECT key FROM tenure.idempotency") == []


@pytest.mark.parametrize("number", [0, 1001])
def test_none_and_too_many_are_refused(admin: Admin, number: int) -> None:
    with pytest.raises(InvalidValue, match="1 to 1,000"):
        admin.jobs.enqueue_many([mail()] * number, ANA)


async def test_a_thousand_are_one_transaction(db: Database, admin: Admin) -> None:
    answer = admin.jobs.enqueue_many([mail(str(n)) for n in range(1000)], ANA, idempotency_key="k")
    assert len({job.id for job in answer.jobs}) == 1000
    rows = await db.fetch("SELECT DISTINCT xmin::text FROM tenure.job")
    rows += await db.fetch("SELECT DISTINCT xmin::text FROM tenure.idempotency")
    assert len({row["xmin"] for row in rows}) == 1


def test_the_redactor_hides_what_the_setting_names(admin: Admin) -> None:
    """Shows R38."""
    [answer] = admin.jobs.enqueue_many(
        [JobRequest(task="send", args={"street": "DE1", "password": "x"})], ANA
    ).jobs
    admin.settings.set("redact", ["street"], ANA)
    job = admin.jobs.get(answer.id)
    assert job is not None
    shown = admin.settings.redactor().job(job)
    assert shown.args == {"street": "<redacted>", "password": "<redacted>"}
    assert Redactor().job(job).args == {"street": "DE1", "password": "<redacted>"}
