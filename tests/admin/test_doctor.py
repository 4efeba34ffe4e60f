"""The doctor's findings, each through the real thing."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from uuid import uuid4

import pytest

from support.cluster import Cluster
from support.daemons import PgBouncer, Redis
from support.store import install
from tenure import Tenure
from tenure._model.diagnostics import ServerInfo, ServerSetting
from tenure._model.ids import WorkerId
from tenure._model.stats import ListenCheck
from tenure._model.worker import NewWorker, WorkerState
from tenure._store.postgres import engine as postgres
from tenure.admin import Admin, By
from tenure.admin.doctor.server import release, switched_on
from tenure.types import FindingCode, Level

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.store import Database
    from tenure.types import Finding

NOWHERE = "redis://127.0.0.1:1/0"


def examined(url: str, *, redis: str = "") -> list[Finding]:
    """What the doctor finds."""
    app = Tenure(url, redis=redis)
    try:
        return list(app.admin.doctor())
    finally:
        app.close()


def one(findings: list[Finding], subject: str) -> Finding:
    """The one finding on a subject; where it is not fine, it says why and what to do."""
    [found] = [each for each in findings if each.subject == subject]
    assert (found.level is Level.FINE) == (not found.why) == (not found.todo)
    return found


def about(findings: list[Finding], subject: str) -> list[str]:
    """What was found on a subject."""
    return [each.what for each in findings if each.subject == subject]


async def worker(
    db: Database, *queues: str, beaten: timedelta = timedelta(0), **meta: object
) -> None:
    """A worker whose last heartbeat is this old."""
    me = WorkerId(uuid4())
    await db.run(db.store.workers.register(NewWorker(me, "w", "host", 1, "0", queues, 10)))
    await db.run(
        db.store.workers.heartbeat(me, state=WorkerState.ACTIVE, running=0, meta=meta or None)
    )
    await db.fetch(
        "UPDATE tenure.worker SET last_heartbeat_at = clock_timestamp() - $1::interval "
        "WHERE id = $2",
        str(beaten),
        str(me),
    )


@pytest.fixture(scope="module")
def sound() -> Iterator[str]:
    """The URL of a database on a server that forces to disk what it acknowledges."""
    with Cluster(15, {"fsync": "on", "full_page_writes": "on"}) as cluster:
        install(cluster.url())
        yield cluster.url()


def test_a_sound_installation_has_no_problem(sound: str) -> None:
    findings = examined(sound)
    assert {each.subject for each in findings} == {
        "database", "durability", "clock", "wakeups", "privileges", "security", "schema",
        "retention", "vacuum", "horizon", "workers", "leases", "tokens",
    }  # fmt: skip
    assert {each.subject for each in findings if each.level is not Level.FINE} == {"workers"}
    assert re.fullmatch(r"notifications arrive within \d+ ms", one(findings, "wakeups").what)


def test_a_database_that_does_not_answer_is_a_finding() -> None:
    findings = examined("postgresql://nobody:hush@127.0.0.1:1/none", redis=NOWHERE)
    assert one(findings, "database").level is Level.PROBLEM
    assert one(findings, "redis").level is Level.PROBLEM
    assert "hush" not in str(findings)


def test_a_database_that_cannot_be_written_to_is_a_problem(db: Database) -> None:
    [found] = examined(f"{db.url}?options=-c%20default_transaction_read_only%3Don")
    assert (found.subject, found.level) == ("database", Level.PROBLEM)


async def test_a_schema_that_does_not_fit_is_a_problem(empty_database: str) -> None:
    found = one(examined(empty_database), "schema")
    assert (found.level, found.todo) == (Level.PROBLEM, "run: tenure db migrate")


def test_what_is_acknowledged_and_not_on_disk_is_a_problem(db: Database) -> None:
    """The suite's own server forces nothing."""
    assert about(examined(db.url), "durability") == ["fsync is off", "full_page_writes is off"]
    unsafe = examined(f"{db.url}?options=-c%20synchronous_commit%3Doff")
    assert "synchronous_commit is off" in about(unsafe, "durability")


@pytest.mark.parametrize("redis", [False, True])
def test_pooler_is_reported_with_the_wakeup_fallback(
    cluster: Cluster, db: Database, redis: bool
) -> None:
    with PgBouncer(port=cluster.port) as pgbouncer, Redis() as server:
        url = pgbouncer.url(urlsplit(db.url).path.removeprefix("/"))
        found = one(examined(url, redis=server.url if redis else ""), "wakeups")
    assert "a connection pooler is in front of PostgreSQL" in found.what
    assert found.level is (Level.FINE if redis else Level.WARNING)
    assert redis or "poll every 1 s" in found.why
    assert redis or "TENURE_REDIS_URL" in found.todo


def test_notices_that_are_not_heard_are_a_problem(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "check_listen", lambda _: ListenCheck())
    assert one(examined(db.url), "wakeups").level is Level.PROBLEM


def test_a_redis_is_tried_if_there_is_one(db: Database) -> None:
    """Shows R34."""
    assert about(examined(db.url), "redis") == []
    assert one(examined(db.url, redis=NOWHERE), "redis").level is Level.PROBLEM
    with Redis() as redis:
        assert one(examined(db.url, redis=redis.url), "redis").level is Level.FINE


async def test_workers_that_are_live_stale_or_missing(db: Database) -> None:
    assert about(examined(db.url), "workers") == ["no worker is live"]
    await worker(db, "default", beaten=timedelta(minutes=5))
    stale, missing = about(examined(db.url), "workers")
    # Some seconds may pass before it is looked at.
    assert re.fullmatch(r"worker w on host sent no heartbeat for 30\d s", stale)
    assert missing == "no worker is live"
    await worker(db, "default")
    assert about(examined(db.url), "workers")[1:] == ["1 worker is live, with 10 slots"]


async def test_queue_without_workers_is_a_problem(db: Database) -> None:
    app = Tenure(db.url, redis="")
    app.task(name="work", queue="mail")(_work).enqueue()
    app.close()
    await worker(db, "default")
    await worker(db, "mail", beaten=timedelta(minutes=5))
    assert one(examined(db.url), "queues").todo == "run: tenure worker module:app -q mail"
    await worker(db, "*")
    assert about(examined(db.url), "queues") == []


async def test_a_task_that_no_live_worker_knows_is_a_problem(db: Database) -> None:
    await worker(db, "default", unknown_tasks=["a", "b"])
    await worker(db, "default", unknown_tasks=["b"])
    assert about(examined(db.url), "tasks") == []  # no job of it waits
    app = Tenure(db.url, redis="")
    app.task(name="b")(_work).enqueue()
    app.close()
    assert about(examined(db.url), "tasks") == ["jobs of task b wait, but no live worker knows it"]
    await worker(db, "default")
    assert about(examined(db.url), "tasks") == []


async def test_unfired_schedules_are_a_problem(db: Database) -> None:
    """Shows R26."""
    assert about(examined(db.url), "schedules") == []
    app = Tenure(db.url, redis="")
    for name in ("a", "b", "c", "d", "e"):
        app.admin.schedules.create(name, "work", By("ana"), every=3600)
    assert about(examined(db.url), "schedules") == ["no schedule is overdue"]
    await db.fetch(
        "UPDATE tenure.schedule SET next_at = now() - interval '5 minutes' WHERE name <> 'b'"
    )
    found = [each for each in examined(db.url) if each.subject == "schedules"]
    assert {each.level for each in found} == {Level.PROBLEM}
    assert re.fullmatch(
        r"schedule a is 5 min( \d s)? overdue: no worker is firing schedules", found[0].what
    )
    assert found[0].todo == "run: tenure scheduler module:app"
    assert len(found) == 3
    app.close()


def test_a_server_that_is_too_old_is_a_problem(db: Database) -> None:
    app = Tenure(db.url, redis="")
    condition = app.admin._run(app.admin._store.inspection.server_info())
    app.close()
    [found] = release(replace(condition, number=140_012, version="14.12"))
    assert (found.fault, found.level) == (FindingCode.SERVER_TOO_OLD, Level.PROBLEM)


@pytest.mark.parametrize(
    ("source", "todo"),
    [
        ("client", "remove fsync from the options in the database URL"),
        ("command line", "remove fsync from the command line of the server, and restart it"),
        ("database", "in SQL: ALTER DATABASE d RESET fsync"),
        ("user", "in SQL: ALTER ROLE r RESET fsync"),
        ("database user", "in SQL: ALTER ROLE r IN DATABASE d RESET fsync"),
        ("default", "in SQL: ALTER SYSTEM SET fsync = 'on'; SELECT pg_reload_conf()"),
    ],
)
def test_setting_error_names_its_source(source: str, todo: str) -> None:
    condition = ServerInfo("15", 150_000, "r", "d", {}, datetime.now(UTC))
    assert switched_on(condition, "fsync", ServerSetting("off", source)) == todo


async def test_the_async_face_finds_the_same(db: Database) -> None:
    app = Tenure(db.url, redis="")
    found = await app.admin.adoctor()
    assert [each.subject for each in found] == [each.subject for each in examined(db.url)]
    assert isinstance(app.admin, Admin)
    app.close()


def _work() -> None:
    """Nothing."""
