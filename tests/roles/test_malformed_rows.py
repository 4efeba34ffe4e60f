"""A producer's malformed rows, next to a real worker and server that have only their roles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx
import psycopg
import pytest

from support.processes import wait_for
from support.serving import serving
from support.workers import Worker
from tenure._model.access import NewToken
from tenure._model.audit import By
from tenure._rules import access
from tenure._rules.access import grant
from tenure._store.postgres.store import PostgresStore
from tenure.types import Scope
from tests.roles.test_columns import NOT_A_PRODUCERS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.roles.conftest import Parties

FAR = ("infinity", "-infinity", "4000-01-01 BC", "20000-01-01")
NOT_OBJECTS = ("null", "[]", '"x"', "5", "true")


def deep(levels: int) -> str:
    return '{"a":' + "[" * levels + "]" * levels + "}"


def malformed() -> Iterator[dict[str, Any]]:
    """The columns that differ from those of a good job."""
    for column, value in NOT_A_PRODUCERS.items():
        yield {column: {"now()": "now", "gen_random_uuid()": "0" * 32}.get(value, value.strip("'"))}
    for column in ("run_at", "created_at"):
        yield from ({column: at} for at in (*FAR, None))
    for length in ("-1 day", "0", "1 us", "2 days", "1 mon", "1 mon -29 days", "290000 years"):
        yield {"lease": length}
    for length in ("-1 s", "1 mon", "100000 years", "2000000 days -47999999 hours"):
        yield {"key_for": length, "key": "k"}
    yield from ({"max_attempts": n} for n in (0, -5, 32768, None))
    yield from ({"max_losses": n} for n in (-1, 32768, None))
    yield from ({"target": n} for n in (0, -1, 2**31))
    yield from ({"priority": n} for n in (-1, 10, None))
    yield from ({"queue": name} for name in ("", "q" * 201, None))
    yield from ({"task": name} for name in ("", "t" * 201, "t" * 9000, None))
    yield from ({"key": key} for key in ("", "k" * 401))
    yield from ({"args": text} for text in (*NOT_OBJECTS, None))
    yield from ({"meta": text} for text in NOT_OBJECTS)
    yield from ({"args": deep(levels)} for levels in (66, 100, 400, 900, 3000, 6000))
    yield from ({"meta": deep(levels)} for levels in (66, 400, 3000))
    for number in ("9" * 5000, "1" + "0" * 20000, "9" * 400 + ".5", "1e300", str(2**63)):
        yield {"args": '{"n":[' + number + "]}"}
    for name in ("timeout", "expires_in"):
        yield from ({"meta": f'{{"{name}":{value}}}'} for value in ('"abc"', "-1", "[]", "1e18"))
    yield from ({"meta": f'{{"tags":{value}}}'} for value in ("5", '"x"', "[1]", "{}"))
    yield from ({"meta": f'{{"fields":{value}}}'} for value in ("[1]", '"x"', "7"))
    yield {"meta": '{"schedule":5}'}
    yield from ({"meta": f'{{"tick_at":{value}}}'} for value in ('"soon"', "5", '"9999-12-31"'))


GOOD: dict[str, Any] = {
    "queue": "poisoned",
    "task": "good",
    "args": "{}",
    "priority": 9,
    "run_at": "now",
    "created_at": "now",
    "max_attempts": 3,
    "max_losses": 3,
}


def insert(connection: psycopg.Connection, columns: dict[str, Any]) -> int | None:
    """The row's id, or None if it is refused."""
    row = {**GOOD, **columns}
    names, places = ", ".join(row), ", ".join("%s" for _ in row)
    text = f"INSERT INTO tenure.job ({names}) VALUES ({places}) RETURNING id"
    try:
        [(job_id,)] = connection.execute(text.encode(), list(row.values())).fetchall()
    except psycopg.Error:
        return None
    else:
        return int(job_id)


@pytest.fixture(scope="module")
def secret(parties: Parties) -> str:
    secret = access.secret(b"m" * 32)
    allowed = grant([scope.value for scope in Scope], ["*"])
    token = NewToken("all", access.hint(secret), access.digest(secret), allowed)
    parties.run("server", PostgresStore().tokens.create(token, By("ana", "cli")))
    return secret


def answers(caller: httpx.Client) -> dict[str, int]:
    """What does not answer with 200: lists, figures and pages."""
    paths = (
        "/v1/jobs?count=500",
        "/v1/jobs?state=queued",
        "/v1/jobs?state=failed&count=500",
        "/v1/jobs?filter=queue:poisoned",
        "/v1/overview",
        "/v1/queues",
        "/v1/failed/groups",
        "/jobs",
        "/failed",
        "/queues",
    )
    found = {path: caller.get(path).status_code for path in paths}
    return {path: status for path, status in found.items() if status != httpx.codes.OK}


def test_malformed_rows_are_refused_or_dead_letters_while_good_jobs_complete(
    parties: Parties, secret: str, tmp_path: Path
) -> None:
    """Shows R16. Every row goes before the good jobs of its queue."""
    cases = list(malformed())
    assert len(cases) >= 100
    good, bad = [], {}
    with (
        serving(parties.as_role("server"), tmp_path) as service,
        httpx.Client(base_url=service.url, timeout=30, follow_redirects=True) as caller,
        parties.connected("producer") as producer,
    ):
        origin = {"Origin": service.url}
        caller.post("/sign-in", data={"token": secret}, headers=origin).raise_for_status()
        caller.headers["Authorization"] = f"Bearer {secret}"
        for nth, columns in enumerate(cases):
            if (job_id := insert(producer, columns)) is not None:
                bad[job_id] = columns
            if nth % 5 == 0:
                good.append(insert(producer, {"priority": 5}))
        assert answers(caller) == {}
        target = "tests.roles.handlers:app"
        with Worker(target, parties.as_role("worker"), tmp_path, queues="poisoned") as worker:
            assert wait_for(lambda: not _live(parties), 60), worker.log()
        assert answers(caller) == {}
        assert caller.get(f"/v1/jobs/{min(bad)}").json()["done_reason"] == "unreadable"
    with parties.connected("reader") as reader:
        completed = {row[0] for row in reader.execute("SELECT id FROM tenure.job_archive")}
        failed = dict(reader.execute("SELECT id, done_reason FROM tenure.job_failed").fetchall())
    assert completed >= set(good)
    # A row that is within the rules runs. Every other one is a dead letter.
    assert {job_id: bad[job_id] for job_id in bad.keys() - failed.keys()} == {}
    assert set(failed.values()) == {"unreadable"}
    assert len(bad) < 40


@pytest.mark.parametrize("at", ["0002-01-01", "1969-12-31", "9999-12-31"])
def test_a_remote_worker_runs_a_job_of_any_year(
    parties: Parties, secret: str, tmp_path: Path, at: str
) -> None:
    """Every time that the table accepts can be read, also one before 1970."""
    with (
        serving(parties.as_role("server"), tmp_path) as service,
        httpx.Client(base_url=service.url, timeout=30) as caller,
        parties.connected("producer") as producer,
    ):
        caller.headers["Authorization"] = f"Bearer {secret}"
        job_id = insert(producer, {"queue": "years", "created_at": at})
        wanted = {"queues": ["years"], "worker": {"name": "w"}, "count": 1, "wait": 0}
        [work] = caller.post("/v1/leases:acquire", json=wanted).json()["jobs"]
        assert work["id"] == str(job_id)
        caller.post("/v1/leases:complete", json={"lease": work["lease"]}).raise_for_status()


def _live(parties: Parties) -> list[Any]:
    with parties.connected("reader") as reader:
        return reader.execute("SELECT id FROM tenure.job WHERE queue = 'poisoned'").fetchall()
