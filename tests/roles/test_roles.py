"""Each role of `tenure db roles` can do what its programs do, and is refused the rest.

As those roles, on a real server: what is granted too little fails here, and what too much.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

import psycopg
import pytest

from support.race_helpers import ended
from support.store import lanes
from tenure._model.access import NewToken
from tenure._model.audit import By
from tenure._model.ids import JobId, WorkerId
from tenure._model.job import NewJob, State
from tenure._model.lease import SettleStatus
from tenure._model.operation import NewErasure
from tenure._model.outcome import Failed, Loss, Lost
from tenure._model.schedule import NewSchedule, Timing
from tenure._model.selector import Selector
from tenure._model.worker import NewWorker, WorkerState
from tenure._rules import access
from tenure._rules.access import grant
from tenure._store.postgres.roles import GRANTS, ROLES
from tenure._store.postgres.store import PostgresStore
from tenure._store.steps import RawSql, TransactionMark, atomically
from tenure.admin import roles
from tenure.errors import Error, QueryFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from support.roles import Parties
    from tenure._model.lease import Lease
    from tenure._store.steps import Op

STORE = PostgresStore()
# When the schedule is due.
LATER = PostgresStore(clock=lambda: datetime.now(UTC) + timedelta(minutes=2))
BY = By("ada")
REASONED = By("ada", reason="ticket 12")
ME = WorkerId(UUID(int=0xA))
SECRET = access.secret(bytes(32))
EVERYONE = frozenset(ROLES)
# A worker has every right to live jobs, and so may do to them what an operator does.
RUNNERS = frozenset({"owner", "server", "worker"})
OPERATORS = frozenset({"owner", "server"})
LOOKERS = frozenset({"owner", "server", "worker", "reader"})


def job(**fields: Any) -> NewJob:
    return NewJob("work", **fields)


def once() -> Op[Any]:
    def answer() -> Op[Any]:
        yield from ()
        return [1]

    return STORE.tokens.once("ada", "key", "d", answer())


def in_sql(*options: str) -> Op[Any]:
    values = ", ".join(("'work'", *options))
    yield RawSql(f"SELECT tenure.enqueue({values})")


def schedule(name: str) -> NewSchedule:
    return NewSchedule(name=name, timing=Timing(every=timedelta(minutes=1)), job=job())


def erasure(tag: str) -> NewErasure:
    return NewErasure(selector=Selector(tag=(tag,)), salt=b"salt", rate=500)


def token(number: int) -> NewToken:
    secret = access.secret(number.to_bytes(32))
    allowed = grant(["read"], ["*"])
    return NewToken("ci", access.hint(secret), access.digest(secret), allowed)


# What is done, and who may. Each is done as every role, in a transaction that is rolled back.
VERBS: Mapping[str, tuple[Callable[[], Op[Any]], frozenset[str]]] = {
    "enqueue": (lambda: STORE.jobs.enqueue([job(), job(queue="q")]), EVERYONE - {"reader"}),
    "enqueue one": (lambda: STORE.jobs.enqueue([job()]), EVERYONE - {"reader"}),
    "enqueue by key": (lambda: STORE.jobs.enqueue([job(key="k")]), EVERYONE - {"reader"}),
    "enqueue in SQL": (in_sql, EVERYONE - {"reader"}),
    "enqueue in SQL by key": (lambda: in_sql("key => 'sql'"), EVERYONE - {"reader"}),
    "check the schema": (STORE.schema.check, EVERYONE),
    "claim": (lambda: STORE.leases.claim(lanes("default"), count=1, worker=ME), RUNNERS),
    "claim, limited": (
        lambda: STORE.leases.claim(lanes("default"), count=1, worker=ME, limited=True),
        RUNNERS,
    ),
    "rescue": (STORE.leases.rescue, RUNNERS),
    "register": (
        lambda: STORE.workers.register(NewWorker(ME, "w", "h", 1, "1", ["q"], 1)),
        RUNNERS,
    ),
    "heartbeat": (
        lambda: STORE.workers.heartbeat(ME, state=WorkerState.ACTIVE, running=0),
        RUNNERS,
    ),
    "fire": (LATER.ticks.fire, RUNNERS),
    "declare": (lambda: STORE.schedules.declare("shop", (1,), [schedule("declared")]), RUNNERS),
    "get": (lambda: STORE.jobs.get(JobId(1)), LOOKERS),
    "list queued": (lambda: STORE.job_queries.list(State.QUEUED), LOOKERS),
    "list failed": (lambda: STORE.job_queries.list(State.FAILED), LOOKERS),
    "list completed": (lambda: STORE.job_queries.list(State.COMPLETED), LOOKERS),
    "attempts": (lambda: STORE.jobs.attempts(JobId(1)), LOOKERS),
    "items": (lambda: STORE.jobs.items(JobId(1)), LOOKERS),
    "queues": (STORE.queues.list, LOOKERS),
    "workers": (STORE.workers.list, LOOKERS),
    "settings": (STORE.settings.changed, EVERYONE - {"producer"}),
    "schedules": (STORE.schedules.list, LOOKERS),
    "totals": (STORE.stats.totals, LOOKERS),
    "lateness": (STORE.overview.lateness, LOOKERS),
    "storage": (STORE.overview.storage, EVERYONE),
    "pulse": (STORE.overview.pulse, LOOKERS),
    "retrying": (lambda: STORE.overview.retrying(["q"]), LOOKERS),
    "hours": (lambda: STORE.overview.hours(["q"]), LOOKERS),
    "completions": (lambda: STORE.overview.completions(count=1), LOOKERS),
    "late schedules": (lambda: STORE.overview.late_schedules(timedelta(0), count=1), LOOKERS),
    "holders": (lambda: STORE.overview.holders(count=1), EVERYONE),
    "condition": (STORE.inspection.server_info, EVERYONE),
    "rights": (lambda: STORE.inspection.rights("ana"), EVERYONE),
    "drift": (STORE.inspection.schema_drift, EVERYONE),
    "unkept": (STORE.inspection.vacuum_issues, EVERYONE),
    "notify queue": (STORE.inspection.notify_queue, EVERYONE),
    "locked": (lambda: STORE.inspection.locked(["q"], timedelta(0), count=1), LOOKERS),
    "ticks": (lambda: STORE.ticks.list("s"), LOOKERS),
    "audit": (lambda: STORE.audit.list("job:1"), OPERATORS | {"reader"}),
    "cancel": (lambda: STORE.job_commands.cancel([JobId(1)], BY), RUNNERS),
    "hold": (lambda: STORE.job_commands.hold([JobId(1)], BY), RUNNERS),
    "retry": (lambda: STORE.job_commands.retry([JobId(2)], BY), RUNNERS),
    "discard": (lambda: STORE.job_commands.discard([JobId(2)], BY), RUNNERS),
    "pause a queue": (lambda: STORE.queues.pause("q", BY), OPERATORS),
    "set a setting": (lambda: STORE.settings.set("lease", 60, BY), OPERATORS),
    "reset a setting": (lambda: STORE.settings.reset("redact", BY), OPERATORS),
    "drain": (lambda: STORE.workers.drain(ME, BY), RUNNERS),
    "create a schedule": (lambda: STORE.schedules.create(schedule("s2"), BY), RUNNERS),
    "delete a schedule": (lambda: STORE.schedules.delete("s", BY), OPERATORS),
    "create a token": (lambda: STORE.tokens.create(token(9), BY), OPERATORS),
    "find a token": (lambda: STORE.tokens.find(access.digest(SECRET)), OPERATORS),
    "touch a token": (lambda: STORE.tokens.touch([1]), OPERATORS),
    "revoke a token": (lambda: STORE.tokens.revoke([1], BY), OPERATORS),
    "list tokens": (STORE.tokens.list, OPERATORS | {"reader"}),
    "once": (once, OPERATORS),
    "start an erasure": (lambda: STORE.erasures.start(erasure("start"), REASONED), OPERATORS),
    "run an erasure": (STORE.operations.run_chunk, RUNNERS),
}


@pytest.fixture(scope="module", autouse=True)
def furnished(parties: Parties) -> None:
    """One of each thing, so that every verb has something to do."""
    parties.run("owner", STORE.jobs.enqueue([job(), job(queue="dead", max_attempts=1), job()]))
    claims = parties.run("owner", STORE.leases.claim(lanes("dead"), count=1, worker=ME))
    broken = Failed(Error("ValueError", "no"), retryable=False)
    parties.run(
        "owner", STORE.settlement.settle([ended(claimed.lease, broken) for claimed in claims.jobs])
    )
    parties.run("owner", STORE.settings.set("redact", [], BY))
    parties.run("owner", STORE.queues.limit("default", 5, BY))
    parties.run("owner", STORE.workers.register(NewWorker(ME, "w", "h", 1, "1", ["q"], 1)))
    parties.run("owner", STORE.schedules.create(schedule("s"), BY))
    parties.run("owner", STORE.tokens.create(token(0), BY))
    tagged = job(queue="erased", key="erased", meta={"tags": ["erased"]})
    parties.run("owner", STORE.jobs.enqueue([tagged]))
    parties.run("owner", STORE.erasures.start(erasure("erased"), REASONED))


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("verb", VERBS)
def test_a_role_can_do_its_verbs_and_is_refused_the_rest(
    parties: Parties, verb: str, role: str
) -> None:
    make, allowed = VERBS[verb]
    refused = "" if role in allowed else "42501"
    assert _refusal(parties, role, make()) == refused


def _refusal(parties: Parties, role: str, op: Op[Any]) -> str:
    """By which error an operation is refused; empty if it is not."""
    try:
        parties.run(role, _rolled_back(op))
    except QueryFailed as error:
        return error.sqlstate
    return ""


def _rolled_back(op: Op[Any]) -> Op[None]:
    yield TransactionMark.BEGIN
    try:
        yield from op
    finally:
        yield TransactionMark.ROLLBACK


def claimed(parties: Parties) -> Lease:
    parties.run("producer", STORE.jobs.enqueue([job(queue="own", key="own")]))
    [one] = parties.run("worker", STORE.leases.claim(lanes("own"), count=1, worker=ME)).jobs
    return one.lease


def test_a_worker_runs_a_producers_job_from_its_claim_to_its_end(parties: Parties) -> None:
    lease = claimed(parties)
    assert parties.run("worker", STORE.leases.renew([lease]))
    parties.run("worker", STORE.leases.progress(lease, done=1, items={"a": 1}, cursor=7))
    [settled] = parties.run("worker", STORE.settlement.settle([ended(lease)]))
    assert settled.state is State.COMPLETED
    [again] = parties.run("worker", STORE.settlement.settle([ended(lease)]))
    assert again.answer is SettleStatus.REPEATED
    found = parties.run("reader", STORE.jobs.get(lease.job_id))
    assert found is not None
    assert found.state is State.COMPLETED


def test_a_worker_settles_within_a_transaction_and_rescues_failures(parties: Parties) -> None:
    lease = claimed(parties)
    settlement = ended(lease).settlement
    parties.run(
        "worker", atomically(STORE.settlement.settle_within(lease, settlement, also=[job()]))
    )
    died = claimed(parties)
    death = Lost(Loss.OWN, Error("ProcessDied", "its process was ended by SIGKILL"))
    [settled] = parties.run("worker", STORE.settlement.settle([ended(died, death)]))
    assert settled.state is State.QUEUED
    lost = claimed(parties)
    assert parties.run("worker", STORE.leases.confirm([lost])) == [True]
    parties.execute(
        "UPDATE tenure.job SET lease_expires_at = now(), max_losses = 0 "
        "WHERE claimed_by IS NOT NULL"
    )
    [rescued] = parties.run("worker", STORE.leases.rescue()).jobs
    assert (rescued.job_id, rescued.reason) == (lost.job_id, "lost")
    assert parties.run("reader", STORE.jobs.attempts(lost.job_id))


def test_a_day_that_is_made_later_needs_no_grant(parties: Parties) -> None:
    """Rows are reached through the parent, whose rights alone count."""
    parties.execute("DROP TABLE " + _today(parties, "job_archive"))
    parties.execute("DROP TABLE " + _today(parties, "attempt"))
    upkept = parties.run("owner", STORE.maintenance.maintain())
    assert len([line for line in upkept.done if line.startswith("CREATE")]) == 2
    lease = claimed(parties)
    [settled] = parties.run("worker", STORE.settlement.settle([ended(lease)]))
    assert settled.state is State.COMPLETED
    assert parties.run("reader", STORE.jobs.attempts(lease.job_id))


def _today(parties: Parties, parent: str) -> str:
    with parties.connected("owner") as connection:
        row = connection.execute(
            "SELECT 'tenure.' || %s::text || to_char(now() AT TIME ZONE 'UTC', '_YYYYMMDD')",
            [parent],
        ).fetchone()
    assert row is not None
    name: str = row[0]
    return name


def test_the_owner_alone_migrates_and_keeps_the_tables(parties: Parties) -> None:
    assert parties.run("owner", STORE.schema.migrate()) == []
    assert parties.run("owner", STORE.maintenance.maintain()).left == []
    for role in ROLES[1:]:
        with pytest.raises(QueryFailed) as refused:
            parties.run(role, STORE.schema.migrate())
        assert refused.value.sqlstate == "42501"


@pytest.mark.parametrize(
    ("role", "statement"),
    [
        ("producer", "SELECT args FROM tenure.job"),
        ("producer", "SELECT * FROM tenure.job"),
        ("producer", "DELETE FROM tenure.job"),
        ("producer", "UPDATE tenure.job SET queue = 'x'"),
        ("producer", "DELETE FROM tenure.job_key"),
        ("producer", "SELECT FROM tenure.job_archive"),
        ("producer", "SELECT FROM tenure.schedule"),
        ("producer", "SELECT setval('tenure.job_id_seq', 1)"),
        (
            "producer",
            "INSERT INTO tenure.job_key (task, key, job_id, hits) VALUES ('t', 'k', 1, 9)",
        ),
        ("worker", "SELECT hash FROM tenure.api_token"),
        ("worker", "SELECT FROM tenure.audit"),
        ("worker", "DELETE FROM tenure.audit"),
        ("worker", "UPDATE tenure.queue SET paused_at = NULL"),
        ("worker", "UPDATE tenure.setting SET value = '1'"),
        ("worker", "DELETE FROM tenure.operation"),
        ("worker", "UPDATE tenure.operation SET actor = 'x'"),
        ("worker", "UPDATE tenure.operation_item SET place = 7"),
        ("worker", "UPDATE tenure.attempt SET outcome = 'completed'"),
        ("worker", "UPDATE tenure.worker SET name = 'x'"),
        ("worker", "UPDATE tenure.job_key SET task = 'x'"),
        ("worker", "BEGIN; LOCK TABLE tenure.queue IN EXCLUSIVE MODE"),
        ("worker", "BEGIN; LOCK TABLE tenure.audit IN EXCLUSIVE MODE"),
        ("reader", "SELECT hash FROM tenure.api_token"),
        ("reader", "SELECT FROM tenure.idempotency"),
        ("reader", "SELECT hash FROM tenure.dashboard_session"),
        *((role, "SELECT FROM tenure.sign_in_code") for role in ("worker", "producer", "reader")),
        *((role, "SELECT FROM tenure.dashboard_session") for role in ("worker", "producer")),
        ("reader", "SELECT nextval('tenure.job_id_seq')"),
        ("server", "UPDATE tenure.audit SET actor = 'x'"),
        ("server", "DELETE FROM tenure.audit"),
        ("server", "DELETE FROM tenure.api_token"),
        ("server", "UPDATE tenure.api_token SET scopes = '{admin}'"),
        ("server", "UPDATE tenure.api_token SET hash = '\\x00'"),
        ("server", "UPDATE tenure.operation SET actor = 'x'"),
        ("server", "INSERT INTO tenure.schema_version VALUES (99, 'x', false, now())"),
        ("reader", "SELECT tenure.enqueue('work')"),
        *((role, "DROP FUNCTION tenure.enqueue") for role in ROLES[1:]),
        *((role, "ALTER FUNCTION tenure.enqueue SECURITY DEFINER") for role in ROLES[1:]),
        *((role, "CREATE TABLE tenure.mine (x int)") for role in ROLES[1:]),
        *((role, "TRUNCATE tenure.job") for role in ROLES[1:]),
        *((role, "DROP TABLE tenure.job") for role in ROLES[1:]),
        *((role, "ALTER TABLE tenure.job ADD x int") for role in ROLES[1:]),
    ],
)
def test_what_no_verb_of_a_role_needs_it_is_refused(
    parties: Parties, role: str, statement: str
) -> None:
    with (
        parties.connected(role) as connection,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        connection.execute(statement.encode())


def test_role_without_grants_sees_nothing(parties: Parties) -> None:
    parties.execute("CREATE ROLE tenure_stranger LOGIN")
    try:
        with (
            parties.connected("stranger") as connection,
            pytest.raises(psycopg.errors.InsufficientPrivilege, match="schema tenure"),
        ):
            connection.execute("SELECT FROM tenure.job")
    finally:
        parties.execute("DROP ROLE tenure_stranger")


def test_a_member_of_a_role_has_its_rights(parties: Parties) -> None:
    """The role of the program's own tables enqueues in its own transactions."""
    parties.execute("CREATE ROLE tenure_shop LOGIN; GRANT tenure_producer TO tenure_shop")
    try:
        parties.run("shop", STORE.jobs.enqueue([job()]))
    finally:
        parties.execute("DROP ROLE tenure_shop")


def test_the_script_can_be_run_again_by_the_owner_too_and_takes_back_what_was_more(
    parties: Parties,
) -> None:
    parties.execute("GRANT ALL ON tenure.api_token, tenure.audit TO tenure_worker, PUBLIC")
    parties.execute("GRANT SELECT (hash) ON tenure.api_token TO tenure_reader")
    with parties.connected("owner") as connection:
        connection.execute(roles("tenure").encode())
    for role in ("worker", "reader"):
        with (
            parties.connected(role) as connection,
            pytest.raises(psycopg.errors.InsufficientPrivilege),
        ):
            connection.execute("SELECT hash FROM tenure.api_token")


def test_every_table_of_the_schema_has_its_row_of_rights(parties: Parties) -> None:
    """A migration that brings a table says who may do what with it."""
    with parties.connected("owner") as connection:
        rows = connection.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = 'tenure'::regnamespace "
            "AND relkind IN ('r', 'p') AND NOT relispartition"
        ).fetchall()
    assert {name for (name,) in rows} == {name for name in GRANTS if " " not in name}


def test_every_function_of_the_schema_has_its_row_of_rights(parties: Parties) -> None:
    with parties.connected("owner") as connection:
        rows = connection.execute(
            "SELECT proname, proowner::regrole::text, prosecdef FROM pg_proc "
            "WHERE pronamespace = 'tenure'::regnamespace"
        ).fetchall()
    granted = {name.split()[1] for name in GRANTS if name.startswith("FUNCTION ")}
    assert {name for name, _, _ in rows} == granted
    assert {(owner, definer) for _, owner, definer in rows} == {("tenure_owner", False)}


def test_the_right_to_call_the_function_gives_no_other(parties: Parties) -> None:
    """It runs with the rights of its caller."""
    parties.execute(
        "CREATE ROLE tenure_stranger LOGIN; GRANT USAGE ON SCHEMA tenure TO tenure_stranger"
    )
    try:
        assert _refusal(parties, "stranger", in_sql()) == "42501"
        parties.execute("GRANT EXECUTE ON FUNCTION tenure.enqueue TO tenure_stranger")
        with (
            parties.connected("stranger") as connection,
            pytest.raises(psycopg.errors.InsufficientPrivilege, match="table"),
        ):
            connection.execute("SELECT tenure.enqueue('work')")
    finally:
        parties.execute("DROP OWNED BY tenure_stranger; DROP ROLE tenure_stranger")


def test_a_programs_trigger_enqueues_for_roles_that_may_not(parties: Parties) -> None:
    """Its own function has the rights of a producer, and lends them for this one job."""
    parties.execute(
        "CREATE ROLE tenure_shop LOGIN; GRANT tenure_producer TO tenure_shop; "
        "CREATE ROLE tenure_clerk LOGIN; "
        "CREATE SCHEMA shop AUTHORIZATION tenure_shop; GRANT USAGE ON SCHEMA shop TO tenure_clerk"
    )
    try:
        with parties.connected("shop") as shop:
            shop.execute(
                "CREATE TABLE shop.orders (id int); GRANT INSERT ON shop.orders TO tenure_clerk; "
                "CREATE FUNCTION shop.ordered() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER "
                "SET search_path = pg_catalog, pg_temp AS $$BEGIN "
                "PERFORM tenure.enqueue('receipt', jsonb_build_object('order_id', NEW.id)); "
                "RETURN NULL; END$$; "
                "CREATE TRIGGER ordered AFTER INSERT ON shop.orders "
                "FOR EACH ROW EXECUTE FUNCTION shop.ordered()"
            )
        with parties.connected("clerk") as clerk:
            clerk.execute("INSERT INTO shop.orders VALUES (7), (8)")
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                clerk.execute("SELECT tenure.enqueue('receipt')")
        with parties.connected("reader") as reader:
            rows = reader.execute(
                "SELECT args FROM tenure.job WHERE task = 'receipt' ORDER BY id"
            ).fetchall()
        assert rows == [({"order_id": 7},), ({"order_id": 8},)]
    finally:
        parties.execute(
            "DROP OWNED BY tenure_shop, tenure_clerk CASCADE; DROP ROLE tenure_shop, tenure_clerk"
        )


def test_the_roles_are_named_after_their_schema() -> None:
    text = roles("jobs")
    assert set(re.findall(r"CREATE ROLE (\w+)", text)) == {f"jobs_{role}" for role in ROLES}
    assert "tenure" not in text
