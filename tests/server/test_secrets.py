"""Fifty secrets, planted wherever a program may keep one: none of them comes out where it should
not. A server and a worker run at their most talkative, and everything goes wrong that can."""

from __future__ import annotations

import json
import os
import secrets
import string
import subprocess
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from support.processes import wait_for
from support.store import install
from tenure import Tenure
from tenure.admin import By, State
from tests.server.conftest import serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import httpx

    from support.databases import Databases
    from tests.server.conftest import Service

OPS = By("ops")
ENVIRONMENT = ("AWS_SECRET_ACCESS_KEY", "PGPASSWORD", "SECRET_KEY", "SENTRY_DSN", "STRIPE_API_KEY")
QUEUE = "vault"

JOBS = """
import os
from tenure import AsyncJob, Job, Tenure

app = Tenure()
log = __import__("logging").getLogger("shop")

@app.task(name="keeps", queue="vault")
async def keeps(job: AsyncJob, result: dict, cursor: str, item: str, message: str, **args):
    await job.progress(cursor=cursor, items={"one": {"data": item}}, message=message)
    return result

@app.task(name="says", queue="vault", max_attempts=1)
def says(text: str, **args):
    raise RuntimeError(text)

@app.task(name="apart", queue="vault", max_attempts=1, process=True)
def apart(text: str, **args):
    log.error("about to fail with password=%s", args["password"])
    raise RuntimeError(text)

@app.task(name="wants", queue="vault", max_attempts=1)
def wants(n: int):
    pass
"""


@dataclass
class Plants:
    """The secrets by where they were planted. Letters alone: a number may be left out of an error
    for another reason."""

    by_place: dict[str, str] = field(default_factory=dict)

    def __call__(self, place: str, secret: str | None = None) -> str:
        """A new secret, or one made elsewhere."""
        made = secret or "".join(secrets.choice(string.ascii_lowercase) for _ in range(24))
        assert place not in self.by_place
        self.by_place[place] = made
        return made

    def found_in(self, text: str) -> list[str]:
        """The places whose secrets are in a text, also as JSON would write them."""
        return [place for place, secret in self.by_place.items() if secret in text]


@dataclass
class House:
    """The server, the worker, what was planted, and where it may come out."""

    service: Service
    worker: subprocess.Popen[bytes]
    worker_words: Path
    plants: Plants
    jobs: list[str]

    def words(self) -> str:
        """All that both have said."""
        return self.service.words.read_text() + self.worker_words.read_text()


@pytest.fixture(scope="module")
def house(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    plants = Plants()
    directory = tmp_path_factory.mktemp("house")
    (directory / "jobs.py").write_text(JOBS)
    database = databases.create(databases.template("tenure", install))
    given = conninfo_to_dict(database)
    with_password = database.replace(
        "://postgres@", f"://postgres:{plants('password of the URL')}@"
    )
    assert with_password != database
    as_pairs = " ".join(f"{name}={value}" for name, value in given.items())
    as_pairs += f" password={plants('password of the pairs')}"
    with pytest.MonkeyPatch.context() as patch:
        for name in ENVIRONMENT:
            patch.setenv(name, plants(f"environment {name}"))
        redis = f"redis://:{plants('password of Redis')}@127.0.0.1:1/0"
        patch.setenv("TENURE_REDIS_URL", redis)
        loud = ("--log-level", "debug", "--log-format", "json")
        words = directory / "worker.log"
        with serving(with_password, directory, *loud) as service, words.open("wb") as file:
            service.admin.settings.set("redact", ["card", "customer.iban"], OPS)
            jobs = enqueued(service, plants)
            worker = subprocess.Popen(
                [sys.executable, "-m", "tenure", "worker", "jobs:app", "--log-level", "debug"],
                env=os.environ
                | {"TENURE_DATABASE_URL": as_pairs, "TENURE_RUN_DIR": str(directory / "run")},
                cwd=directory,
                stdout=file,
                stderr=file,
            )
            try:
                yield House(service, worker, words, plants, jobs)
            finally:
                worker.terminate()
                worker.wait(60)
    databases.drop(database)


def enqueued(service: Service, plants: Plants) -> list[str]:
    """Jobs with secrets in their payloads; they end well, fail, and cannot even begin."""
    declared = {
        name: plants(f"args {name}")
        for name in ("password", "api_key", "card", "authorization", "refreshToken", "cookie")
    }
    iban, deep = plants("args customer.iban"), plants("args in a list")
    declared |= {"customer": {"iban": iban}, "list": [{"secret": deep}]}  # type: ignore[dict-item]
    ordinary = {name: plants(f"args {name}") for name in ("note", "diagnosis", "phone")}
    keeps = {
        "result": {"name": plants("result"), "password": plants("result password")},
        "cursor": plants("cursor"),
        "item": plants("item"),
        "message": plants("progress message"),
    }
    texts = [
        f"cannot log in as ada with {declared['password']}",
        f"refused: {declared['card']} of {iban}",
        f"no route to postgresql://ada:{plants('error URL')}@db/shop",
        f"connection failed: host=db password={plants('error pair')} user=ada",
        f"401 for Authorization: Bearer {plants('error header')}",
        f"bad token {plants('error access token', 'tnr_' + 'A' * 49)}",
        f'config: {{"api_key": "{plants("error JSON")}"}}',
    ]
    with service.caller() as caller:

        def enqueue(task: str, args: dict[str, Any], **options: Any) -> str:
            body = {"task": task, "queue": QUEUE, "args": args, "max_attempts": 1, **options}
            answer = caller.post("/v1/jobs", json=body)
            assert answer.status_code == 201, answer.text
            return str(answer.json()["id"])

        made = [enqueue("keeps", declared | ordinary | keeps, key=plants("job key"))]
        made += [enqueue("says", declared | ordinary | {"text": text}) for text in texts]
        made += [enqueue("apart", declared | {"text": texts[0]})]
        made += [enqueue("wants", {"n": plants("an argument of another type")})]
        made += [enqueue("wants", {"n": {"unknown": plants("an argument of another shape")}})]
        made += [enqueue("keeps", {"missing": plants("an argument too many")})]
    return made


def reads(house: House) -> Iterator[httpx.Response]:
    """Every GET route, with a token that may not read payloads; every name that exists."""
    with house.service.caller("read") as reader:
        paths = reader.get("/openapi.json").json()["paths"]
        for path in [*(path for path, verbs in paths.items() if "get" in verbs), "/metrics"]:
            if "{job_id}" in path:
                yield from (reader.get(path.replace("{job_id}", job)) for job in house.jobs)
            elif path == "/v1/jobs":
                yield from (reader.get(path, params={"state": state}) for state in State)
            elif path == "/v1/audit":
                targets = [f"job:{job}" for job in house.jobs]
                yield from (reader.get(path, params={"target": target}) for target in targets)
            else:
                for size in (1, 50):
                    yield reader.get(path, params={"page_size": size})


def mistakes(house: House) -> Iterator[httpx.Response]:
    """Requests that are refused, with secrets in every part of them."""
    plants = house.plants
    wrong = "tnr_" + "B" * 49
    with house.service.caller() as caller:
        for name, value in (
            ("Authorization", f"Bearer {plants('header mistyped token', wrong)}"),
            ("Authorization", f"Basic {plants('header Basic')}"),
            ("Authorization", plants("header without a kind")),
        ):
            yield caller.get("/v1/jobs", params={"state": "queued"}, headers={name: value})
        for name in ("Cookie", "X-Api-Key", "tracestate"):
            headers = {name: plants(f"header {name}")}
            yield caller.get("/v1/jobs", params={"filter": "none:1"}, headers=headers)
        same = {"Idempotency-Key": plants("header Idempotency-Key")}
        for n in (1, 2):
            body = {"task": "t", "queue": "other", "args": {"n": n}}
            yield caller.post("/v1/jobs", json=body, headers=same)
        yield caller.post("/v1/jobs", json={"task": "t", "priority": plants("body priority")})
        yield caller.post("/v1/jobs", json={"task": "t", "args": plants("body args")})
        yield caller.post("/v1/jobs", content=b'{"task": "' + plants("body half").encode())
        yield caller.get(f"/v1/jobs/{plants('path')}")
        yield caller.get(
            "/v1/jobs", params={"state": "queued", "page_token": plants("query page_token")}
        )
        yield caller.get("/v1/jobs", params={"state": plants("query state")})
        yield caller.put("/v1/settings/lease", json={"value": plants("body setting")})


def works(house: House) -> Iterator[httpx.Response]:
    """The worker protocol; the answers of the acquire are its holder's own, and not given here."""
    plants, service = house.plants, house.service
    made = service.admin.tokens.create("secret", OPS, scopes=["work"], queues=["elsewhere"])
    plants("access token", made.secret)
    service.enqueue("elsewhere", args={"pin": plants("args of a job elsewhere")})
    with service.caller("work", queues=("elsewhere",)) as worker:
        acquired = worker.post(
            "/v1/leases:acquire", json={"queues": ["elsewhere"], "worker": {"name": "me"}}
        ).json()
        [job] = acquired["jobs"]
        lease = plants("lease", job["lease"])
        plants("session", acquired["session"])
        house.jobs.append(job["id"])
        values = {"lease": lease, "result": plants("result elsewhere"), "reason": "x" * 300}
        yield worker.post("/v1/leases:complete", json=values)
        error = {"type": "E", "message": f"{plants('error elsewhere')} and {lease}"}
        failed = {"lease": lease, "error": error, "retry": "never", "log": plants("log elsewhere")}
        yield worker.post("/v1/leases:fail", json=failed)
        yield worker.post("/v1/leases:complete", json={"lease": lease, "result": 1})


def refused_by_the_database(house: House) -> Iterator[httpx.Response]:
    """An insert that fails on a rule, which PostgreSQL explains by quoting the row; and a database
    that takes no more connections."""
    service = house.service
    with psycopg.connect(service.database, autocommit=True) as connection:
        connection.execute("ALTER TABLE tenure.job ADD CHECK (task <> 'refused') NOT VALID")
        with service.caller() as caller:
            args = {"note": house.plants("a row that is refused")}
            yield caller.post("/v1/jobs", json={"task": "refused", "args": args})
        name = connection.info.dbname
        server = conninfo_to_dict(service.database) | {"dbname": "postgres"}
        with (
            psycopg.connect(**server, autocommit=True) as beside,  # type: ignore[arg-type]
            service.caller() as caller,
        ):
            caller.get("/ready")
            beside.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false')
            beside.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = %s AND pid <> %s",
                [name, connection.info.backend_pid],
            )
            try:
                yield caller.get("/ready")
                yield caller.get("/v1/jobs", params={"state": "queued"})
                yield caller.post("/v1/jobs", json={"task": "t"})
            finally:
                beside.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true')


def started_wrongly(house: House, directory: Path) -> list[str]:
    """What commands say that cannot read, or not reach, the database they are given."""
    plants = house.plants
    secret = plants("password of a URL that cannot be read")
    pair = plants("password of pairs that cannot be read")
    away = plants("password of a database that is away")
    server, worker = ["server", "--port", "0"], ["worker", "jobs:app"]
    request = [
        (server, f"postgresql://ada:{secret}@[::1/shop"),
        (worker, f"host=h password='{pair} user=ada"),
        (server, f"host=127.0.0.1 port=1 password={away}"),
        (worker, f"postgresql://ada:{away}@127.0.0.1:1/shop"),
    ]
    return [started(command, url, house, directory) for command, url in request]


def started(command: list[str], url: str, house: House, directory: Path) -> str:
    """What a command says until it ends, or waits for its database."""
    words = directory / "words"
    with (
        words.open("wb") as file,
        subprocess.Popen(
            [sys.executable, "-m", "tenure", *command, "--log-level", "debug"],
            env=os.environ | {"TENURE_DATABASE_URL": url, "TENURE_RUN_DIR": str(directory / "r")},
            cwd=house.worker_words.parent,
            stdout=file,
            stderr=file,
        ) as process,
    ):
        try:
            over = wait_for(
                lambda: process.poll() is not None or "waiting for the" in words.read_text(), 30
            )
        finally:
            process.terminate()
            process.wait(30)
    assert over, words.read_text()
    assert words.read_text()
    return words.read_text()


@pytest.mark.timeout(240)
def test_no_secret_comes_out(house: House, tmp_path: Path) -> None:
    plants, service = house.plants, house.service
    app = Tenure(service.database)
    try:
        assert wait_for(
            lambda: all(
                (row := app.admin.jobs.get(int(job))) is not None and not row.state.is_live
                for job in house.jobs
            ),
            60,
        ), house.words()
    finally:
        app.close()
    refused = [*mistakes(house), *works(house)]
    answers = list(reads(house))
    refused += refused_by_the_database(house)
    result = started_wrongly(house, tmp_path)

    assert len(plants.by_place) >= 50
    assert all(answer.is_success or answer.status_code in (403, 404) for answer in answers)
    assert sum(answer.is_success for answer in answers) > 60
    problems = [answer for answer in refused if not answer.is_success]
    assert len(problems) >= 18
    out = [(answer.url.path, answer.text) for answer in [*answers, *refused]]
    out += [("a command", text) for text in result]
    out += [("the log", line) for line in house.words().splitlines()]
    leaks = [(*plants.found_in(text), where, text) for where, text in out if plants.found_in(text)]
    assert leaks == []
    lines = service.words.read_text().splitlines()
    document = [json.loads(line) for line in lines if line.startswith("{")]
    assert any("unexpected database error" in line["message"] for line in document)
    with service.caller("read", "payload:read") as allowed:
        shown = allowed.get(f"/v1/jobs/{house.jobs[0]}").json()
    assert plants.by_place["args note"] in str(shown["args"])
    assert plants.by_place["args password"] not in str(shown)
