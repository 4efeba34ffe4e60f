"""The function `enqueue` of the database: the checks and the rows of an enqueue from Python.

Each value is passed both ways: by task name in Python, and in SQL.
"""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

import psycopg
import pytest

from support.store import SECOND
from tenure._model.job import KIND_NAMES
from tenure._model.outcome import Succeeded
from tenure._rules.payload import MAX_KEY, MAX_NAME, MAX_PAYLOAD
from tenure._store.postgres.connections import connect
from tenure._store.postgres.sessions import Session
from tenure._store.postgres.statements import literal
from tenure._store.postgres.store import PostgresStore
from tenure.config import LONGEST_LEASE, LONGEST_WAIT
from tenure.errors import InvalidValue, PayloadError
from tenure.task import EnqueueOptions, new_job, unregistered_task
from tests.conformance.acts import BY, DAY, claim, count, get, settle
from tests.conformance.test_enqueue_refusals import nested
from tests.conformance.test_wakeups import heard, listener

if TYPE_CHECKING:
    from psycopg import AsyncConnection

    from support.store import Database
    from tenure._model.ids import JobId

REFUSED = "22023"
US = timedelta(microseconds=1)
# Rows differ in these by nature.
OWN = ("id", "created_at", "run_at")
TYPES = {
    "task": "text",
    "args": "jsonb",
    "queue": "text",
    "priority": "integer",
    "run_at": "timestamptz",
    "delay": "interval",
    "key": "text",
    "key_for": "interval",
    "max_attempts": "integer",
    "lease": "interval",
    "timeout": "interval",
    "expires_in": "interval",
    "tags": "text[]",
    "target": "integer",
    "held": "boolean",
}
FAR = datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
LONG = timedelta(days=999_999_999)
FITTING: list[dict[str, Any]] = [
    {},
    {"args": {"to": ["a", None, True, 1.5, -(2**63), 'ü "\\{},NULL'], "n": {}, "": ""}},
    {"args": {"d": nested(64), "n": [2**63 - 1, -(2**63), 0.1, -0.5, 5e-324, 1e18]}},
    {"args": {"a": "ü" * ((MAX_PAYLOAD - len('{"a":""}')) // 2)}},
    # As text, the server writes it with spaces, beyond the limit.
    {"args": {"a": [1] * 100_000, "b": '": , \\"', "c": "\n\t\x01\x7f"}},
    {"task": "x" * MAX_NAME, "queue": "_a.:/<>@-" + "q" * (MAX_NAME - 9)},
    *({"priority": each} for each in (0, 9, None)),
    *({"queue": each} for each in ("mail", None)),
    *({"delay": each} for each in (US, DAY, 90.5, LONGEST_WAIT, 0, -US, -3000 * DAY)),
    *({"run_at": each} for each in (FAR, datetime(1, 1, 1, tzinfo=UTC))),
    *({"key": each} for each in ("k", "\U0001f600" * MAX_KEY, "a\nb", " ")),
    *({"key": "k", "key_for": each} for each in (0, US, 3 * DAY, LONGEST_WAIT, LONGEST_WAIT - US)),
    *({"max_attempts": each} for each in (1, 32_767, None)),
    *({"lease": each} for each in (6.01, 40, LONGEST_LEASE)),
    *({"timeout": each} for each in (US, 0.25, 1, 1.5, 300, 3 * DAY, LONG)),
    *({"expires_in": each} for each in (US, 60, 1e6 + 0.125, LONG)),
    {"expires_in": DAY, "delay": DAY - US},
    {"expires_in": DAY, "run_at": datetime(2001, 1, 1, tzinfo=UTC)},
    *({"tags": each} for each in ([], ["a"], ["", "a,b", 'ü"{}', "NULL", "a"], None)),
    *({"target": each} for each in (1, 2_147_483_647, None)),
    {"held": True},
    {
        "args": {"n": 1},
        "queue": "mail",
        "priority": 7,
        "delay": 90,
        "key": "k",
        "key_for": DAY,
        "max_attempts": 9,
        "lease": 60,
        "timeout": 30,
        "expires_in": 3600,
        "tags": ["a", "b"],
        "target": 4,
        "held": True,
    },
]
UNFIT: list[dict[str, Any]] = [
    *({"task": each} for each in ("", " ", "two words", "-a", ".a", "a\n", "ü", "x" * 201)),
    *({"queue": each} for each in ("", "*", "a*", "-q", "q\n", "é", "q" * 201)),
    *({"priority": each} for each in (-1, 10, 12)),
    {"args": {"a": "x" * (MAX_PAYLOAD - len('{"a":""}') + 1)}},
    {"args": {"a": "ü" * MAX_PAYLOAD}},
    {"args": {"a": [1] * 131_069}},
    {"args": {"d": nested(65)}},
    *({"args": {"n": [each]}} for each in (2**63, -(2**63) - 1, 1e19, -1e300)),
    *({"args": {"n": each}} for each in ("a\0b", "\ud800")),
    {"run_at": FAR, "delay": DAY},
    {"delay": LONGEST_WAIT + US},
    *({"key": each} for each in ("", "x" * (MAX_KEY + 1))),
    {"key_for": DAY},
    *({"key": "k", "key_for": each} for each in (-US, LONGEST_WAIT + US)),
    *({"max_attempts": each} for each in (0, -1, 32_768, 2**31 - 1)),
    *({"lease": each} for each in (0, -SECOND, SECOND, 6 * SECOND, LONGEST_LEASE + US)),
    *({"timeout": each} for each in (0, -US)),
    *({"expires_in": each} for each in (0, -US)),
    {"expires_in": DAY, "delay": DAY},
    {"expires_in": DAY, "run_at": FAR},
    {"tags": ["x" * MAX_PAYLOAD]},
    *({"target": each} for each in (0, -1)),
]


def shown(value: dict[str, Any]) -> str:
    return f"{value}"[:60]


def request(fields: dict[str, Any]) -> tuple[str, dict[str, Any], dict[str, Any]]:
    rest = dict(fields)
    return rest.pop("task", "mail.send"), rest.pop("args", {}), rest


async def by_name(db: Database, fields: dict[str, Any]) -> JobId:
    """Enqueue as `app.admin.jobs.enqueue` does, without its audit row."""
    task, args, options = request(fields)
    held = options.pop("held", False)
    job = new_job(unregistered_task(task), cast("EnqueueOptions", options), args)
    if held:
        job = type(job)(**{name: getattr(job, name) for name in job.__slots__} | {"held": held})
    [answer] = await db.run(db.real.jobs.enqueue([job]))
    return answer.id


def as_literal(name: str, value: Any) -> str | None:
    if name == "args":
        return json.dumps(value)
    if TYPES[name] != "interval" or value is None:
        return literal(value)
    length = value if isinstance(value, timedelta) else timedelta(seconds=value)
    return f"{length.days} days {length.seconds} s {length.microseconds} us"


async def in_sql(connection: AsyncConnection[Any], fields: dict[str, Any]) -> int:
    task, args, options = request(fields)
    given = {"task": task, "args": args, **options}
    named = ", ".join(
        f"{name} => ${place}::text::{TYPES[name]}" for place, name in enumerate(given, 1)
    )
    cursor = psycopg.AsyncRawCursor(connection)
    await cursor.execute(
        f"SELECT tenure.enqueue({named})".encode(),
        [as_literal(name, value) for name, value in given.items()],
    )
    [answer] = await cursor.fetchall()
    return int(answer[0])


async def call(db: Database, **fields: Any) -> int:
    async with await psycopg.AsyncConnection.connect(db.url, autocommit=True) as connection:
        return await in_sql(connection, fields)


async def row(db: Database, job_id: int) -> dict[str, Any]:
    """A job's columns as the server writes them, and its due time."""
    [found] = await db.fetch(
        "SELECT to_jsonb(j)::text AS whole, j.run_at - j.created_at AS wait, j.run_at "
        "FROM tenure.job AS j WHERE id = $1",
        job_id,
    )
    columns = json.loads(found["whole"], parse_float=str, parse_int=str)
    wait = found["run_at"] if found["run_at"].year == 9999 else found["wait"]
    return {name: columns[name] for name in columns if name not in OWN} | {"wait": wait}


async def keys(db: Database) -> list[dict[str, Any]]:
    return await db.fetch("SELECT task, key, hits, expires_at FROM tenure.job_key")


async def test_a_job_enqueued_in_sql_is_the_row_that_python_writes(db: Database) -> None:
    """Every column but the id and the times, as text; and how far the due time lies ahead."""
    main = await db.caller("main")
    for fields in FITTING:
        first = await row(db, await by_name(db, fields)), await keys(db)
        await db.fetch("DELETE FROM tenure.job_key")
        second = await row(db, await in_sql(main.connection, fields)), await keys(db)
        await db.fetch("DELETE FROM tenure.job_key")
        assert first == second, shown(fields)
        assert first[0].keys() >= {"args", "meta", "lease", "key_for", "max_attempts", "max_losses"}


async def test_every_column_of_a_job_is_compared(db: Database) -> None:
    columns = await db.fetch(
        "SELECT attname FROM pg_attribute WHERE attrelid = 'tenure.job'::regclass "
        "AND attnum > 0 AND NOT attisdropped"
    )
    compared = await row(db, await call(db))

    assert {each["attname"] for each in columns} == {*compared, *OWN} - {"wait"}


async def test_every_option_of_an_enqueue_by_name_is_a_parameter(db: Database) -> None:
    [found] = await db.fetch(
        "SELECT proargnames FROM pg_proc WHERE oid = 'tenure.enqueue'::regproc"
    )

    options = {*EnqueueOptions.__optional_keys__, "task", "args", "held"}
    assert set(found["proargnames"]) == options == TYPES.keys()


async def test_what_python_refuses_is_refused_in_sql(db: Database) -> None:
    main = await db.caller("main")
    for fields in UNFIT:
        with pytest.raises((InvalidValue, PayloadError)):
            await by_name(db, fields)
        # A failure names the fields in the parameters of the statement.
        with pytest.raises(psycopg.errors.DataError) as refusal:
            await in_sql(main.connection, fields)
        # jsonb itself refuses text that PostgreSQL cannot store, before the function runs.
        before = fields.get("args", {}).get("n") in ("a\0b", "\ud800")
        assert before or refusal.value.sqlstate == REFUSED, shown(fields)
    assert await count(db, "job") == await count(db, "job_key") == 0


SAYING = [
    ("NULL", "task name must be .*, got NULL"),
    *((f"'tenure.{kind}'", "must not be one that Tenure reserves") for kind in KIND_NAMES),
    ("'t', NULL", "args must be a JSON object, got NULL"),
    ("'t', '[]'", "args must be a JSON object, got array"),
    ("'t', '\"x\"'", "args must be a JSON object, got string"),
    ("'t', 'null'", "args must be a JSON object, got null"),
    ("'t', delay => '1 month'", "delay must be a fixed length of time, got 1 mon"),
    ("'t', delay => '1 mon -30 days'", "delay must be a fixed length"),
    ("'t', lease => '1 year'", "lease must be a fixed length"),
    ("'t', timeout => '2147483647 days'", "timeout must be positive and at most"),
    ("'t', expires_in => '2147483647 days'", "expires_in must be positive and at most"),
    ("'t', run_at => 'infinity'", "run_at must be in the years 1 to 9999 in UTC, got infinity"),
    ("'t', run_at => '-infinity'", "run_at must be in the years 1 to 9999"),
    ("'t', run_at => '0001-12-31 BC'", "run_at must be in the years 1 to 9999"),
    ("'t', run_at => '10000-01-01 00:00+00'", "run_at must be in the years 1 to 9999"),
    ("'t', tags => '{a,NULL}'", "tags must be a list of strings, got {a,NULL}"),
    ("'t', tags => '{{a},{b}}'", "tags must be a list of strings"),
    ("'t', priority => 12", "priority must be 0 to 9, got 12\n"),
]


async def test_a_refusal_says_what_to_do(db: Database) -> None:
    main = await db.caller("main")
    for sql, words in SAYING:
        with pytest.raises(psycopg.errors.InvalidParameterValue, match=words) as refusal:
            await main.connection.execute(f"SELECT tenure.enqueue({sql})".encode())
        message = refusal.value.diag
        assert (message.message_primary or "").startswith("tenure: ")
        assert (message.message_hint or "").endswith(".")


async def test_an_infinite_interval_is_refused_where_the_server_has_one(db: Database) -> None:
    [version] = await db.fetch("SELECT current_setting('server_version_num')::int AS number")
    for name in ("delay", "timeout", "expires_in", "lease"):
        for value in ("infinity", "-infinity"):
            with pytest.raises(psycopg.errors.DataError) as refusal:
                await db.fetch(f"SELECT tenure.enqueue('t', {name} => '{value}')")
            assert version["number"] < 170_000 or refusal.value.sqlstate == REFUSED


async def test_an_error_does_not_quote_arguments_or_keys(db: Database) -> None:
    for fields in ({"args": {"a": ["hidden", 2**64]}}, {"key": "hidden" * 100}):
        with pytest.raises(psycopg.errors.InvalidParameterValue) as refusal:
            await call(db, **fields)
        assert "hidden" not in str(refusal.value)


async def test_a_day_has_24_hours_in_every_time_zone(db: Database) -> None:
    party = await db.caller("berlin")
    await party.connection.execute("SET timezone = 'Europe/Berlin'")
    job_id = await in_sql(party.connection, {"delay": 365 * DAY})

    assert (await row(db, job_id))["wait"] == 365 * DAY


async def test_defaults_come_from_the_queue_and_the_settings(db: Database) -> None:
    await db.run(db.real.settings.set("max_attempts", 7, BY))
    await db.run(db.real.settings.set("max_losses", 5, BY))
    await db.run(db.real.queues.configure("mail", BY, lease=None, max_attempts=11))
    for fields in ({}, {"queue": "mail"}, {"queue": "mail", "max_attempts": 2}):
        assert await row(db, await call(db, **fields)) == await row(db, await by_name(db, fields))
    [found] = await db.fetch("SELECT array_agg(DISTINCT max_attempts) AS all FROM tenure.job")
    assert found["all"] == [2, 7, 11]


async def test_a_paused_queue_takes_jobs_and_keeps_them(db: Database) -> None:
    await db.run(db.real.queues.pause("q", BY))
    job_id = await call(db, queue="q")

    assert await claim(db) == []
    await db.run(db.real.queues.resume("q", BY))
    assert [each.job.id for each in await claim(db)] == [job_id]


async def test_a_held_key_returns_the_first_job(db: Database) -> None:
    """Shows R17."""
    first = await call(db, key="k", args={"n": 1})

    assert await call(db, key="k", args={"n": 2}, priority=9) == first
    assert await by_name(db, {"key": "k"}) == first
    assert (await get(db, first)).args == {"n": 1}  # type: ignore[arg-type]  # a plain id
    assert [each["hits"] for each in await keys(db)] == [3]
    assert await call(db, task="other", key="k") != first
    assert await count(db, "job") == 2


async def test_a_key_is_kept_as_long_as_key_for_says(db: Database) -> None:
    """Shows R17."""
    first = await call(db, queue="q", key="k", key_for=3600)
    [claimed] = await claim(db)
    await settle(db, claimed, Succeeded())

    assert await call(db, key="k") == first
    await db.fetch("UPDATE tenure.job_key SET expires_at = now() - interval '1 s'")
    second = await call(db, key="k")
    assert second != first
    assert await call(db, key="k") == second
    assert [(each["hits"], each["expires_at"]) for each in await keys(db)] == [(4, None)]


@pytest.mark.parametrize("commits", [True, False])
async def test_the_second_of_two_calls_with_a_key_waits_for_the_first(
    db: Database, *, commits: bool
) -> None:
    first, second = await db.caller("first"), await db.caller("second")
    await first.connection.execute("BEGIN")
    ours = await in_sql(first.connection, {"key": "k"})
    waiting = asyncio.create_task(in_sql(second.connection, {"key": "k"}))
    await db.until_blocked("second")
    await first.connection.execute("COMMIT" if commits else "ROLLBACK")

    assert (await waiting == ours) is commits
    assert await count(db, "job") == 1


async def test_a_job_disappears_if_its_transaction_rolls_back(db: Database) -> None:
    caller = await db.caller("caller")
    await caller.connection.execute("BEGIN")
    await in_sql(caller.connection, {"key": "k"})
    await caller.connection.execute("ROLLBACK")

    assert await count(db, "job") == await count(db, "job_key") == 0


async def test_a_call_wakes_the_workers_of_its_queue(db: Database) -> None:
    ear = await listener(db)
    await call(db, queue="a")
    await call(db, queue="b", key="k")
    await call(db, queue="c", key="k")

    assert await heard(db, ear) == ["a", "b"]


async def test_a_job_from_sql_runs_as_any_other(db: Database) -> None:
    job_id = await call(db, queue="q", args={"to": "ada"}, timeout=30, tags=["a"])
    [claimed] = await claim(db)

    assert (claimed.job.id, claimed.job.args) == (job_id, {"to": "ada"})
    assert claimed.job.meta == {"timeout": 30.0, "tags": ["a"]}
    await settle(db, claimed, Succeeded())


async def test_a_schema_of_another_name_has_its_own_function(db: Database) -> None:
    with connect(db.url) as connection:
        Session(connection, schema="cell_2").run(PostgresStore("cell_2").schema.migrate())
    ear = await db.caller("ear")
    await ear.connection.execute("LISTEN cell_2_wakeup")
    await db.fetch("SELECT cell_2.enqueue('t', queue => 'mail', key => 'k')")

    [notice] = [each async for each in ear.connection.notifies(timeout=10, stop_after=1)]
    assert notice.payload == "mail"
    [found] = await db.fetch("SELECT count(*) AS n FROM cell_2.job JOIN cell_2.job_key USING (key)")
    assert found["n"] == 1
    assert await count(db, "job") == 0


async def test_a_callers_search_path_and_temporary_tables_change_nothing(db: Database) -> None:
    """Each of these would be found first, if names were looked up as the caller does."""
    expected = await row(db, await by_name(db, {"queue": "q"}))
    caller = await db.caller("caller")
    for statement in (
        "CREATE SCHEMA mine",
        "CREATE FUNCTION mine.length(text) RETURNS int LANGUAGE sql AS 'SELECT 0'",
        "CREATE FUNCTION mine.pg_notify(text, text) RETURNS void LANGUAGE sql AS 'SELECT 1/0'",
        "CREATE FUNCTION mine.scale(numeric) RETURNS int LANGUAGE sql AS 'SELECT 9'",
        "CREATE TEMPORARY TABLE job (LIKE tenure.job INCLUDING ALL)",
        "CREATE TEMPORARY TABLE setting AS SELECT 'max_attempts' AS name, '9'::jsonb AS value",
        "SET search_path = pg_temp, mine, pg_catalog",
    ):
        await caller.connection.execute(statement.encode())
    job_id = await in_sql(caller.connection, {"queue": "q"})

    assert await row(db, job_id) == expected
    assert await count(db, "job") == 2


async def test_a_call_reads_no_table_from_end_to_end(db: Database) -> None:
    """Statistics of an empty table must not make a later call slow (decision 3)."""
    caller = await db.caller("caller")
    await db.fetch("ANALYZE tenure.job_key")
    await in_sql(caller.connection, {"key": "first"})
    await db.fetch(
        "INSERT INTO tenure.job_key (task, key, job_id) "
        "SELECT 'mail.send', 'k' || g, g FROM generate_series(1, 5000) AS g"
    )
    for n in range(10):
        await in_sql(caller.connection, {"key": f"more {n}"})
    await caller.connection.execute("SELECT pg_stat_force_next_flush()")
    [found] = await db.fetch(
        "SELECT sum(seq_scan) AS n FROM pg_stat_user_tables "
        "WHERE schemaname = 'tenure' AND relname IN ('job', 'job_key', 'queue', 'setting')"
    )
    assert found["n"] == 0
