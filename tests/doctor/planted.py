"""Faults, each planted by itself in a real database, and fixes for remedies in words."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from support.store import lanes
from tenure._model.ids import WorkerId
from tenure._model.job import NewJob
from tenure._model.worker import NewWorker, WorkerState
from tenure.admin import By, roles
from tenure.types import FindingCode

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.doctor.conftest import Bed

BY = By("ana")
INSERTED = (
    "INSERT INTO tenure.api_token "
    "(name, hint, hash, scopes, queues, created_by, expires_at, created_at) "
    "VALUES ('ci', 'tnr_0000', sha256('x'), '{{read}}', '{{*}}', 'ada', {}, {})"
)
INVALID = "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'tenure.{}'::regclass"


@dataclass(frozen=True, slots=True)
class Planted:
    """A fault: where it is to be found, how it is planted; `fix` is for a remedy in words. What is
    planted may answer with the URL by which it is to be seen."""

    fault: FindingCode
    subject: str
    plant: Callable[[Bed], str | None]
    restore: Callable[[Bed], str | None] | None = None


def sql(*statements: str) -> Callable[[Bed], None]:
    return lambda bed: bed.sql(*statements)


def setting(name: str) -> Callable[[Bed], None]:
    return sql(f"ALTER SYSTEM SET {name} = off", "SELECT pg_reload_conf()")


def lacks_a_right(bed: Bed) -> str:
    url = bed.as_role("tenure_worker")
    bed.sql("REVOKE DELETE ON tenure.job FROM tenure_worker")
    return url


def may_insert_all(bed: Bed) -> str:
    url = bed.as_role("tenure_worker")
    bed.sql("GRANT INSERT ON tenure.job TO tenure_producer")
    return url


def has_roles_again(bed: Bed) -> str:
    bed.sql(roles("tenure"))
    return bed.as_role("tenure_worker")


def has_a_setting(bed: Bed) -> str:
    url = bed.as_role("tenure_worker")
    bed.sql("ALTER ROLE tenure_worker SET statement_timeout = '1ms'")
    return url


def few_connections(bed: Bed) -> str:
    url = bed.as_role("tenure_worker")
    bed.sql("ALTER ROLE tenure_worker CONNECTION LIMIT 1")
    return url


def many_connections(bed: Bed) -> str:
    bed.sql("ALTER ROLE tenure_worker CONNECTION LIMIT -1")
    return bed.as_role("tenure_worker")


def no_tomorrow(bed: Bed) -> None:
    for table in ("attempt", "job_archive"):
        with bed.connection() as connection:
            name = connection.execute(
                "SELECT %s::text || to_char(now() AT TIME ZONE 'UTC' + interval '1 day', "
                "'_YYYYMMDD')",
                [table],
            ).fetchone()
        assert name is not None
        bed.sql(f"DROP TABLE tenure.{name[0]}")


def dead_rows(bed: Bed) -> None:
    bed.sql(
        "INSERT INTO tenure.idempotency (actor, key, digest, created_at) "
        "SELECT 'a', n, 'd', now() FROM generate_series(1, 25000) AS n",
        "DELETE FROM tenure.idempotency",
    )


def open_transaction(bed: Bed) -> None:
    bed.connection().execute("CREATE TEMPORARY TABLE held ON COMMIT DROP AS SELECT 1")


def worker(bed: Bed, number: int, *, version: str = "1", **meta: object) -> None:
    me = WorkerId(UUID(int=number))
    admin = bed.admin()
    new = NewWorker(me, f"w{number}", "host", 1, version, ["mail"], 10)
    admin._run(admin._store.workers.register(new))
    admin._run(
        admin._store.workers.heartbeat(me, state=WorkerState.ACTIVE, running=0, meta=meta or None)
    )


def stale_worker(bed: Bed) -> None:
    worker(bed, 1)
    bed.sql("UPDATE tenure.worker SET last_heartbeat_at = now() - interval '5 minutes'")


def a_week_later(bed: Bed) -> None:
    bed.sql("UPDATE tenure.worker SET last_heartbeat_at = last_heartbeat_at - interval '8 days'")
    bed.run("tenure db maintain")


def mixed_workers(bed: Bed) -> None:
    worker(bed, 1, version="1")
    worker(bed, 2, version="2")


def waiting_job(bed: Bed) -> None:
    bed.admin().jobs.enqueue("work", {}, BY, queue="else")


def unknown_task(bed: Bed) -> None:
    bed.admin().jobs.enqueue("work", {}, BY, queue="mail")
    worker(bed, 1, unknown_tasks=["work"])


def lost_job(bed: Bed) -> None:
    admin = bed.admin()
    store = admin._store
    admin._run(store.jobs.enqueue([NewJob("work", queue="mail")]))
    me = WorkerId(UUID(int=1))
    ttl = timedelta(minutes=1)
    assert admin._run(store.leases.claim(lanes("mail"), count=1, worker=me, ttl=ttl)).jobs
    bed.sql("UPDATE tenure.job SET lease_expires_at = now() - interval '1 hour'")


def locked_job(bed: Bed) -> None:
    lost_job(bed)
    bed.connection().execute("SELECT FROM tenure.job FOR UPDATE")


def locked_due_job(bed: Bed) -> None:
    worker(bed, 1)
    bed.admin().jobs.enqueue("work", {}, BY, queue="mail")
    bed.connection().execute("SELECT FROM tenure.job FOR UPDATE")


def late_schedule(bed: Bed) -> None:
    bed.admin().schedules.create("nightly", "work", BY, every=3600, queue="mail")
    bed.sql("UPDATE tenure.schedule SET next_at = now() - interval '5 minutes'")


def a_step_back(bed: Bed) -> None:
    admin = bed.admin()
    admin.schema.migrate(to=admin.schema.status().needed - 1)


PLANTED = {
    "the server is away": Planted(
        FindingCode.UNREACHABLE,
        "database",
        lambda bed: bed.cluster.kill(),
        lambda b: b.cluster.start(),
    ),
    "fsync": Planted(FindingCode.FSYNC_OFF, "durability", setting("fsync")),
    "full_page_writes": Planted(
        FindingCode.FULL_PAGE_WRITES_OFF, "durability", setting("full_page_writes")
    ),
    "synchronous_commit": Planted(
        FindingCode.SYNCHRONOUS_COMMIT_OFF, "durability", setting("synchronous_commit")
    ),
    "synchronous_commit of the role": Planted(
        FindingCode.SYNCHRONOUS_COMMIT_OFF,
        "durability",
        sql("ALTER ROLE postgres SET synchronous_commit = off"),
    ),
    "too few connections": Planted(
        FindingCode.LISTEN_FAILED, "wakeups", few_connections, many_connections
    ),
    "a right is missing": Planted(FindingCode.RIGHTS_MISSING, "privileges", lacks_a_right),
    "a right is too wide": Planted(
        FindingCode.RIGHTS_TOO_WIDE, "privileges", may_insert_all, has_roles_again
    ),
    "a role has a setting": Planted(FindingCode.ROLE_SETTING, "privileges", has_a_setting),
    "errors log arguments": Planted(
        FindingCode.PAYLOADS_LOGGED,
        "security",
        sql(
            "ALTER SYSTEM SET log_parameter_max_length_on_error = -1",
            "SELECT pg_reload_conf()",
        ),
    ),
    "statements log arguments": Planted(
        FindingCode.PAYLOADS_LOGGED,
        "security",
        sql("ALTER SYSTEM SET log_statement = 'mod'", "SELECT pg_reload_conf()"),
    ),
    "a migration is pending": Planted(FindingCode.SCHEMA_DIFFERS, "schema", a_step_back),
    "a table is missing": Planted(
        FindingCode.TABLE_MISSING, "schema", sql("DROP TABLE tenure.idempotency")
    ),
    "a column is missing": Planted(
        FindingCode.COLUMN_MISSING, "schema", sql("ALTER TABLE tenure.api_token DROP COLUMN hint")
    ),
    "a constraint is missing": Planted(
        FindingCode.CONSTRAINT_MISSING,
        "schema",
        sql("ALTER TABLE tenure.job DROP CONSTRAINT job_state_check"),
    ),
    "an index is missing": Planted(
        FindingCode.INDEX_MISSING, "schema", sql("DROP INDEX tenure.job_lane_idx")
    ),
    "an index of days is missing": Planted(
        FindingCode.INDEX_MISSING, "schema", sql("DROP INDEX tenure.attempt_ended_at_idx")
    ),
    "an index is not valid": Planted(
        FindingCode.INDEX_INVALID, "schema", sql(INVALID.format("job_held_idx"))
    ),
    "an index was left half made": Planted(
        FindingCode.INDEX_INVALID,
        "schema",
        sql(
            "CREATE INDEX job_lane_idx_ccnew ON tenure.job (queue)",
            INVALID.format("job_lane_idx_ccnew"),
        ),
    ),
    "a function is missing": Planted(
        FindingCode.FUNCTION_MISSING, "schema", sql("DROP FUNCTION tenure.enqueue")
    ),
    "a function was changed": Planted(
        FindingCode.FUNCTION_CHANGED,
        "schema",
        sql("ALTER FUNCTION tenure.enqueue SECURITY DEFINER"),
    ),
    "tomorrow has no partition": Planted(FindingCode.PARTITION_MISSING, "retention", no_tomorrow),
    "an old day is still there": Planted(
        FindingCode.PARTITION_PAST,
        "retention",
        sql(
            "CREATE TABLE tenure.attempt_20200101 PARTITION OF tenure.attempt "
            "FOR VALUES FROM ('2020-01-01') TO ('2020-01-02')"
        ),
    ),
    "autovacuum": Planted(FindingCode.AUTOVACUUM_OFF, "vacuum", setting("autovacuum")),
    "a table is left alone": Planted(
        FindingCode.TABLE_NOT_VACUUMED,
        "vacuum",
        sql("ALTER TABLE tenure.job SET (autovacuum_enabled = false)"),
    ),
    "dead rows": Planted(FindingCode.DEAD_ROWS, "vacuum", dead_rows),
    "idle in transaction": Planted(FindingCode.HORIZON_HELD, "horizon", open_transaction),
    "a prepared transaction": Planted(
        FindingCode.HORIZON_HELD,
        "horizon",
        sql("BEGIN; SELECT txid_current(); PREPARE TRANSACTION 'it''s'"),
    ),
    "a replication slot": Planted(
        FindingCode.HORIZON_HELD,
        "horizon",
        sql("SELECT pg_create_logical_replication_slot('left_behind', 'pgoutput')"),
    ),
    "a worker is stale": Planted(FindingCode.WORKER_STALE, "workers", stale_worker, a_week_later),
    "no worker": Planted(FindingCode.NO_WORKER, "workers", lambda _: None),
    "two releases": Planted(FindingCode.VERSIONS_MIXED, "workers", mixed_workers),
    "a queue without workers": Planted(
        FindingCode.QUEUE_NOT_SERVED,
        "queues",
        waiting_job,
    ),
    "a task that no worker knows": Planted(
        FindingCode.TASK_UNKNOWN,
        "tasks",
        unknown_task,
        lambda bed: bed.run("tenure worker doctored:app"),
    ),
    "a due job that is locked": Planted(FindingCode.JOB_LOCKED, "queues", locked_due_job),
    "an expired lease": Planted(FindingCode.LEASE_OVER, "leases", lost_job),
    "a lease that is locked": Planted(FindingCode.LEASE_OVER, "leases", locked_job),
    "a schedule that is not fired": Planted(
        FindingCode.SCHEDULE_OVERDUE, "schedules", late_schedule
    ),
    "a token without an end": Planted(
        FindingCode.TOKEN_ENDLESS,
        "tokens",
        sql(INSERTED.format("NULL", "now()")),
    ),
    "a token that is not used": Planted(
        FindingCode.TOKEN_UNUSED,
        "tokens",
        sql(INSERTED.format("now() + interval '1 day'", "now() - interval '31 days'")),
    ),
    "a role that may not look": Planted(
        FindingCode.NOT_LOOKED_AT,
        "retention",
        lambda bed: bed.as_role("tenure_producer"),
        lambda bed: bed.url,
    ),
}
