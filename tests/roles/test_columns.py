"""A role writes the columns that its statements write. Ids and times are not its own to choose."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

import psycopg
import pytest

from support.roles import NOT_A_PRODUCERS
from support.store import lanes
from tenure._model.audit import By
from tenure._model.ids import WorkerId
from tenure._model.job import NewJob
from tenure._store.postgres.store import PostgresStore
from tenure.admin import roles

if TYPE_CHECKING:
    from support.roles import Parties

STORE = PostgresStore()
ME = WorkerId(UUID(int=0xB))
JOB = {
    "queue": "'q'",
    "task": "'work'",
    "args": "'{}'",
    "priority": "5",
    "run_at": "now()",
    "created_at": "now()",
    "max_attempts": "3",
    "max_losses": "3",
}
AUDIT = {
    "actor": "'ana'",
    "source": "'code'",
    "action": "'x'",
    "target": "'x'",
    "before": "NULL",
    "after": "NULL",
}


def insert(table: str, values: dict[str, str], overriding: str = "") -> bytes:
    columns, row = ", ".join(values), ", ".join(values.values())
    return f"INSERT INTO tenure.{table} ({columns}) {overriding} VALUES ({row})".encode()


def refused(parties: Parties, role: str, statement: bytes) -> str:
    with (
        parties.connected(role) as connection,
        pytest.raises(psycopg.errors.InsufficientPrivilege) as refusal,
    ):
        connection.execute(statement)
    return str(refusal.value)


def test_a_producer_may_write_the_columns_of_an_enqueue(parties: Parties) -> None:
    with parties.connected("producer") as connection:
        connection.execute(insert("job", JOB))


@pytest.mark.parametrize("column", NOT_A_PRODUCERS)
def test_a_producer_may_write_no_other_column(parties: Parties, column: str) -> None:
    values = {**JOB, column: NOT_A_PRODUCERS[column]}
    assert "table job" in refused(parties, "producer", insert("job", values))


def test_every_column_of_a_job_is_a_producers_or_not(parties: Parties) -> None:
    """A migration that adds a column decides whether an enqueue writes it."""
    with parties.connected("owner") as connection:
        rows = connection.execute(
            "SELECT attname FROM pg_attribute WHERE attrelid = 'tenure.job'::regclass "
            "AND attnum > 0 AND NOT attisdropped"
        ).fetchall()
    optional = {"key", "key_for", "lease", "target", "meta", "held"}
    assert {name for (name,) in rows} == JOB.keys() | NOT_A_PRODUCERS.keys() | optional


@pytest.mark.parametrize("role", ["worker", "server"])
@pytest.mark.parametrize(
    ("column", "value", "overriding"),
    [("id", "7", "OVERRIDING SYSTEM VALUE"), ("at", "now()", "")],
)
def test_the_id_and_the_time_of_an_audit_row_are_the_tables(
    parties: Parties, role: str, column: str, value: str, overriding: str
) -> None:
    values = {**AUDIT, column: value}
    assert "table audit" in refused(parties, role, insert("audit", values, overriding))


@pytest.mark.parametrize("source", ["http", "page", "cli", "server", "anything"])
def test_a_worker_cannot_write_audit_rows_of_another_source(parties: Parties, source: str) -> None:
    values = {**AUDIT, "source": f"'{source}'"}
    assert "row-level security" in refused(parties, "worker", insert("audit", values))
    with parties.connected("server") as connection:
        connection.execute(insert("audit", values))


def test_a_worker_that_tries_to_take_the_next_audit_ids_blocks_no_action(
    parties: Parties,
) -> None:
    """Three hundred of the ids to come, then a hundred audited actions."""
    with parties.connected("owner") as connection:
        [(newest,)] = connection.execute("SELECT coalesce(max(id), 0) FROM tenure.audit").fetchall()
    for overriding in ("OVERRIDING SYSTEM VALUE", "OVERRIDING USER VALUE"):
        values = (
            f"INSERT INTO tenure.audit (id, actor, source, action, target) {overriding} "
            f"SELECT g, 'x', 'code', 'x', 'x' FROM generate_series({newest + 1}, {newest + 300}) g"
        )
        refused(parties, "worker", values.encode())
    refused(parties, "worker", b"SELECT setval('tenure.audit_id_seq', 1)")
    refused(parties, "worker", b"ALTER TABLE tenure.audit ALTER COLUMN id RESTART WITH 1")
    for _ in range(50):
        parties.run("server", STORE.queues.pause("q", By("ana", "http")))
        parties.run("server", STORE.queues.resume("q", By("ana", "http")))
    with parties.connected("owner") as connection:
        [(count,)] = connection.execute(
            "SELECT count(*) FROM tenure.audit WHERE id > %s", [newest]
        ).fetchall()
    assert count == 100


def test_running_the_script_again_revokes_what_was_granted_more_widely(parties: Parties) -> None:
    """What the script granted before: whole tables."""
    parties.execute(
        "GRANT INSERT ON tenure.job TO tenure_producer; "
        "GRANT INSERT ON tenure.audit TO tenure_worker; "
        "GRANT UPDATE ON tenure.api_token TO tenure_server; "
        "ALTER TABLE tenure.audit DISABLE ROW LEVEL SECURITY"
    )
    with parties.connected("producer") as connection:
        connection.execute(insert("job", {**JOB, "token": "1"}))
    parties.execute(roles("tenure"))
    refused(parties, "producer", insert("job", {**JOB, "token": "1"}))
    refused(parties, "worker", insert("audit", {**AUDIT, "id": "7"}, "OVERRIDING SYSTEM VALUE"))
    refused(parties, "worker", insert("audit", {**AUDIT, "source": "'cli'"}))
    refused(parties, "server", b"UPDATE tenure.api_token SET scopes = '{admin}'")


def test_the_grants_alone_add_rights_and_revoke_none(parties: Parties) -> None:
    """In an upgrade: programs of the last release run, and those of the next need new tables."""
    parties.execute(
        "REVOKE ALL ON tenure.dashboard_session, tenure.sign_in_code FROM tenure_server; "
        "GRANT INSERT ON tenure.job TO tenure_producer"
    )
    refused(parties, "server", b"SELECT * FROM tenure.sign_in_code")
    grants = [line for line in roles("tenure").splitlines() if line.startswith("GRANT")]
    with parties.connected("owner") as owner:
        owner.execute("\n".join(grants).encode())
    with parties.connected("server") as server:
        server.execute("SELECT * FROM tenure.sign_in_code, tenure.dashboard_session")
    with parties.connected("producer") as producer:
        producer.execute(insert("job", {**JOB, "token": "1"}))
    parties.execute(roles("tenure"))
    refused(parties, "producer", insert("job", {**JOB, "token": "1"}))


def keyed(key: str, **fields: Any) -> NewJob:
    return NewJob("work", queue="keyed", key=key, key_for=timedelta(hours=1), **fields)


def test_a_producers_keys_hold_one_job_each(parties: Parties) -> None:
    first = parties.run("producer", STORE.jobs.enqueue([keyed("a"), NewJob("work"), keyed("b")]))
    again = parties.run("producer", STORE.jobs.enqueue([keyed("b"), keyed("c"), keyed("a")]))
    as_worker = parties.run("worker", STORE.jobs.enqueue([keyed("c"), keyed("b")]))
    assert [result.created for result in first] == [True, True, True]
    assert [result.created for result in again] == [False, True, False]
    assert [result.created for result in as_worker] == [False, False]
    assert (again[0].id, again[2].id) == (first[2].id, first[0].id)
    assert as_worker[0].id == again[1].id
    claims = parties.run("worker", STORE.leases.claim(lanes("keyed"), count=9, worker=ME))
    ids = {job.job.key: job.job.id for job in claims.jobs}
    assert [ids["a"], ids["b"], ids["c"]] == [first[0].id, first[2].id, again[1].id]


def test_producers_that_enqueue_one_key_at_once_make_one_job(parties: Parties) -> None:
    with ThreadPoolExecutor(4) as pool:
        answers = list(
            pool.map(
                lambda role: parties.run(role, STORE.jobs.enqueue([keyed("raced")]))[0],
                ["producer", "worker"] * 8,
            )
        )
    assert sum(answer.created for answer in answers) == 1
    assert len({answer.id for answer in answers}) == 1


def test_an_ended_jobs_key_is_free_for_a_producer_when_it_expires(parties: Parties) -> None:
    [first] = parties.run("producer", STORE.jobs.enqueue([keyed("freed")]))
    parties.execute(
        f"DELETE FROM tenure.job WHERE id = {first.id}; "
        f"UPDATE tenure.job_key SET expires_at = now() WHERE job_id = {first.id}"
    )
    [second] = parties.run("producer", STORE.jobs.enqueue([keyed("freed")]))
    [third] = parties.run("producer", STORE.jobs.enqueue([keyed("freed")]))
    assert (second.created, third.created) == (True, False)
    assert first.id != second.id == third.id
