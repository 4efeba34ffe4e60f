"""Every route × role × things of another tenant.

The routes come from the OpenAPI document, and each that takes a body must have one here. Every
request aims at another tenant's things. A finding is an answer of 5xx, an answer of 2xx where none
is due, a word of the other tenant in any answer, or a change of the other tenant's rows.
"""

from __future__ import annotations

import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import product
from typing import TYPE_CHECKING, Any

import httpx
import psycopg

from support.processes import wait_for
from tenure.admin import By
from tenure.types import Scope

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from support.serving import Service

OPS = By("ops")
# In every name and text of the other tenant.
MARK = "zzforeign"
QUEUE, OWN = f"{MARK}.q", "own.q"
_LEASES = ("renew", "progress", "complete", "fail", "release", "settle")
# These answer any token with the scope. They show only its own rows, or go by the lease.
_FOR_EVERYBODY = {
    *("/ready", "/live", "/openapi.json", "/v1/schedules:preview"),
    *("/v1/jobs", "/v1/queues", "/v1/queues/throughput", "/v1/workers", "/v1/leases"),
    *("/v1/operations", "/v1/schedules", "/v1/tokens", "/v1/sessions"),
    *(f"/v1/leases:{verb}" for verb in _LEASES),
}
# Tables with the other tenant's rows, and which columns may change by themselves.
_TABLES = {
    "job": "queue LIKE 'zzforeign%'",
    "job_failed": "queue LIKE 'zzforeign%'",
    "job_archive": "queue LIKE 'zzforeign%'",
    "job_item": "true",
    "schedule": "queue LIKE 'zzforeign%'",
    "queue": "true",
    "setting": "true",
    "operation": "filter ->> 'queue' LIKE 'zzforeign%'",
}


@dataclass
class Victim:
    """What the other tenant has, and the requests' bodies that name it."""

    jobs: Sequence[str]
    operations: Sequence[str]
    tokens: Sequence[str]
    workers: Sequence[str]
    pages: Sequence[str]
    lease: str

    def path_values(self, name: str, path: str) -> Sequence[str]:
        """Return values for a parameter of a path."""
        if name == "name":
            if "/settings/" in path:
                return ["lease", "redact"]
            return [f"{MARK}-schedule"] if "/schedules/" in path else [QUEUE, f"{MARK}.other"]
        values: dict[str, Sequence[str]] = {
            "job_id": self.jobs,
            "operation_id": self.operations,
            "token_id": self.tokens,
            "worker_id": self.workers,
            "session_id": ["1", "999999"],
        }
        return values[name]

    def query_values(self, name: str) -> Sequence[str | None]:
        """Return values for a parameter of a query; None omits it."""
        values: dict[str, Sequence[str | None]] = {
            "queue": [None, QUEUE, "*"],
            "task": [None, f"{MARK}.task"],
            "state": [None, "queued", "running", "failed", "completed"],
            "filter": [
                *(None, f"queue:{QUEUE}", f"task:{MARK}.task", f"tag:{MARK}-tag", "args.n:1"),
                *(f"id:{','.join(self.jobs)}", f"key:{MARK}-key", f"worker:{MARK}-worker"),
            ],
            "page_token": [None, *self.pages, "1", "q10", "AAAA"],
            "page_size": [None, "1"],
            "worker": [None, *self.workers],
            "target": [None, f"queue:{QUEUE}", f"job:{self.jobs[0]}"],
        }
        return values.get(name, [None])

    def bodies(self, method: str, path: str) -> Sequence[dict[str, Any] | None]:
        """Return bodies for a route; raise KeyError if a route with a body is new."""
        job = {"task": f"{MARK}.task", "queue": QUEUE, "args": {}}
        lease = {"lease": self.lease}
        schedule = {"name": f"{MARK}-schedule", "task": "t", "every": 60}
        wanted = [
            {"state": "queued", "queue": QUEUE},
            {"state": "failed"},
            {"state": "queued", "ids": list(self.jobs)},
        ]
        texts = [f"queue:{QUEUE} state:queued", f"tag:{MARK}-tag", "state:failed"]
        span = {"since": "2026-01-01T00:00Z", "until": "2026-01-02T00:00Z"}
        token = {"name": "t", "scopes": ["read"]}
        known: dict[str, Sequence[dict[str, Any] | None]] = {
            "POST /v1/jobs": [
                *(job, job | {"key": f"{MARK}-key"}, job | {"queue": OWN, "key": f"{MARK}-key"}),
            ],
            "POST /v1/jobs:batch": [{"jobs": [job]}, {"jobs": [job | {"queue": OWN}, job]}],
            "POST /v1/jobs/{job_id}:move": [{"queue": OWN}, {"priority": 1}, {"queue": QUEUE}],
            "PATCH /v1/jobs/{job_id}": [
                *({"priority": 1}, {"args": {"n": 2}}, {"tags": []}, {"max_attempts": 9}),
            ],
            "POST /v1/jobs/{job_id}:retry": [{}, {"args": {"n": 2}}],
            "POST /v1/jobs/{job_id}:rerun": [{}, {"args": {"n": 2}}, {"keep_key": True}],
            "POST /v1/operations": [
                {"kind": kind, "filter": one, "dry_run": dry}
                for kind in ("cancel", "retry", "delete", "discard")
                for one in (*wanted, *texts)
                for dry in (True, False)
            ]
            + [
                {"kind": "move", "filter": {"state": "queued", "queue": OWN}, "changes": one}
                for one in ({"queue": QUEUE},)
            ],
            "POST /v1/leases:acquire": [
                {"queues": one, "worker": {"name": "w"}} for one in ([QUEUE], [OWN, QUEUE])
            ],
            "POST /v1/leases:renew": [{"leases": [self.lease]}],
            "POST /v1/leases:progress": [lease | {"done": 1}],
            "POST /v1/leases:complete": [lease],
            "POST /v1/leases:fail": [lease | {"error": {"type": "E"}}],
            "POST /v1/leases:release": [lease],
            "POST /v1/leases:settle": [{"endings": [{"release": lease}]}],
            "POST /v1/schedules": [
                *(schedule | {"queue": QUEUE}, schedule | {"queue": OWN}),
                schedule | {"name": "own-schedule", "queue": QUEUE},
            ],
            "POST /v1/schedules:preview": [{"every": 60}],
            "PATCH /v1/schedules/{name}": [{"queue": OWN}, {"jitter": 1}, {"args": {}}],
            "POST /v1/schedules/{name}:backfill": [span, span | {"dry_run": True}],
            "POST /v1/queues/{name}:limit": [{"max_running": 0}, {"max_running": None}],
            "POST /v1/queues/{name}:configure": [{"lease": 60, "max_attempts": 1}],
            "POST /v1/queues/{name}:quota": [{"quotas": {"live_jobs": 0}}],
            "PUT /v1/settings/{name}": [{"value": 60}, {"value": []}],
            "POST /v1/keys:free": [{"task": f"{MARK}.task", "key": f"{MARK}-key"}],
            "POST /v1/tokens": [
                *(token, token | {"queues": [QUEUE]}, token | {"queues": ["*"]}),
                token | {"queues": [OWN, f"{MARK}.*"]},
            ],
            "POST /v1/tokens/{token_id}:quota": [{"quotas": {}}],
            "POST /v1/notices": [
                {"name": f"{MARK}-rule", "event": "failed", "queue": one, "secret": "ops"}
                | {"url": "https://example.com/hook"}
                for one in (QUEUE, "*")
            ],
        }
        if method == "POST" and f"POST {path}" not in known and ":" in path:
            # Actions that take a reason alone.
            return [{}, {"reason": "none"}]
        return known[f"{method} {path}"]


@dataclass(frozen=True)
class Case:
    """One request of one role."""

    role: str
    method: str
    route: str
    path: str
    params: dict[str, str]
    body: dict[str, Any] | None


@dataclass
class Outcome:
    """What was requested and found."""

    cases: int = 0
    routes: int = 0
    answers: Counter[int] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)


def roles(service: Service) -> dict[str, str]:
    """Make the tokens: each scope and some bundles, for the tenant's own queues. Return secrets."""
    bundles = {scope.value: [scope.value] for scope in Scope} | {
        "reader": ["read", "payload:read"],
        "operator": ["read", "payload:read", "operate", "enqueue"],
        "all": [scope.value for scope in Scope],
    }
    create = service.admin.tokens.create
    secrets = {
        name: create(name, OPS, scopes=scopes, queues=["own.*"]).secret
        for name, scopes in bundles.items()
    }
    secrets["mail tasks"] = create(
        "tasks", OPS, scopes=bundles["all"], queues=["own.*"], tasks=["mail.*"]
    ).secret
    gone = create("gone", OPS, scopes=bundles["all"])
    service.admin.tokens.revoke([gone.token.id], OPS)
    return secrets | {"revoked": gone.secret, "malformed": "tnr_x", "nobody": ""}


def victim(service: Service) -> Victim:
    """Make the other tenant's things: jobs in every state, and one of each other kind."""
    admin = service.admin
    with service.caller() as owner:
        made = []
        for number in range(6):
            body: dict[str, Any] = {
                "task": f"{MARK}.task",
                "queue": QUEUE,
                "args": {"n": 1, "text": f"{MARK} text"},
                "tags": [f"{MARK}-tag"],
                "lease": 86_000,
                "key": f"{MARK}-key" if number == 5 else None,
                "max_attempts": 1,
            }
            made.append(owner.post("/v1/jobs", json=body).raise_for_status().json()["id"])
        me = {"name": f"{MARK}-worker", "host": MARK, "language": "none"}
        body = {"queues": [QUEUE], "worker": me, "count": 3}
        jobs = owner.post("/v1/leases:acquire", json=body).raise_for_status().json()["jobs"]
        owner.post("/v1/leases:complete", json={"lease": jobs[0]["lease"], "result": MARK})
        error = {"type": MARK, "message": f"{MARK} failed"}
        owner.post("/v1/leases:fail", json={"lease": jobs[1]["lease"], "error": error})
        options: dict[str, Any] = {"every": 86_400, "queue": QUEUE, "args": {"text": MARK}}
        admin.schedules.create(f"{MARK}-schedule", f"{MARK}.task", OPS, **options)
        admin.queues.configure(QUEUE, OPS, lease=timedelta(minutes=1), max_attempts=None)
        wanted = {"state": "queued", "queue": QUEUE, "task": f"{MARK}.none"}
        started = owner.post("/v1/operations", json={"kind": "cancel", "filter": wanted}).json()
        sealed = [
            owner.get(f"{place}page_size=1").json()["next_page_token"]
            for place in (
                *("/v1/jobs?state=queued&", f"/v1/jobs?filter=task:{MARK}.task&"),
                *("/v1/tokens?", "/v1/audit?"),
            )
        ]
    tokens = [str(row.id) for row in admin.tokens.list(count=3)]
    # Rows of workers and operations are written a moment later.
    wait_for(lambda: bool(admin.workers.list()), 30)

    def is_done() -> bool:
        row = admin.operations.get(started["id"])
        return row is not None and row.state == "done"

    wait_for(is_done, 30)
    workers = [str(row.id) for row in admin.workers.list()]
    pages = [page for page in sealed if page is not None]
    ids = [*made, "1", "999999"]
    return Victim(ids, [started["id"], "999999"], tokens, workers, pages, jobs[2]["lease"])


def cases(document: dict[str, Any], one: Victim, names: Sequence[str]) -> Iterator[Case]:
    """Return every combination of routes, roles, and values of the other tenant."""
    for route, methods in document["paths"].items():
        for method, operation in methods.items():
            parameters = operation.get("parameters", [])
            paths = [p["name"] for p in parameters if p["in"] == "path"]
            queries = [p["name"] for p in parameters if p["in"] == "query"]
            bodies: Sequence[dict[str, Any] | None] = [None]
            if "requestBody" in operation:
                bodies = one.bodies(method.upper(), route)
            places = product(*(one.path_values(name, route) for name in paths))
            params = product(*(one.query_values(name) for name in queries))
            for place, query, body, role in product(places, params, bodies, names):
                path = route.format(**dict(zip(paths, place, strict=True)))
                sent = {k: v for k, v in zip(queries, query, strict=True) if v is not None}
                yield Case(role, method.upper(), route, path, sent, body)


def chosen(every: list[Case], count: int, number: int) -> list[Case]:
    """Choose cases at random, but of each route and role as many as of any other."""
    source = random.Random(number)  # noqa: S311 - a choice of tests
    source.shuffle(every)
    piles: dict[tuple[str, str, str], list[Case]] = {}
    for case in every:
        piles.setdefault((case.role, case.method, case.route), []).append(case)
    left = list(piles.values())
    result: list[Case] = []
    while left and len(result) < count:
        source.shuffle(left)
        result += [pile.pop() for pile in left]
        left = [pile for pile in left if pile]
    return result[:count]


def finding(case: Case, answer: httpx.Response) -> str | None:
    """Return what is wrong with an answer."""
    status, text = answer.status_code, answer.text
    is_open = case.route == "/live"
    if status >= 500:
        return "is a server error"
    if case.role in ("revoked", "malformed", "nobody"):
        return None if status == 401 or is_open else "should be 401"
    # A refusal may repeat a name that was sent.
    if (MARK if answer.is_success else f"{MARK} ") in text:
        return "tells of the other tenant"
    names_queue = case.params.get("queue") is not None or "queue:" in case.params.get("filter", "")
    if answer.is_success and (case.route not in _FOR_EVERYBODY or names_queue):
        return "should be refused"
    if (
        answer.is_success
        and case.method != "GET"
        and any(f'"{word}"' in text for word in ("renewed", "settled", "reached"))
    ):
        return "used the other tenant's lease"
    return None


def standing(database: str) -> dict[str, str]:
    """Return the other tenant's rows."""
    digests = {}
    with psycopg.connect(database) as connection:
        for table, where in _TABLES.items():
            rows = f"SELECT t::text FROM tenure.{table} AS t WHERE {where} ORDER BY 1"  # noqa: S608 - own names
            digests[table] = str(connection.execute(rows.encode()).fetchall())
    return digests


def run(service: Service, *, count: int, number: int = 0, threads: int = 4) -> Outcome:
    """Ask, and return what was found."""
    one, secrets, result = victim(service), roles(service), Outcome()
    with service.caller() as owner:
        document = owner.get("/openapi.json").json()
    picked = chosen(list(cases(document, one, list(secrets))), count, number)
    before = standing(service.database)
    with httpx.Client(base_url=service.url, timeout=60) as client:

        def ask(case: Case) -> tuple[Case, httpx.Response]:
            secret = secrets[case.role]
            headers = {"Authorization": f"Bearer {secret}"} if secret else {}
            answer = client.request(
                case.method, case.path, params=case.params, json=case.body, headers=headers
            )
            return case, answer

        with ThreadPoolExecutor(threads) as pool:
            for case, answer in pool.map(ask, picked):
                result.answers[answer.status_code] += 1
                if (what := finding(case, answer)) is not None:
                    result.findings.append(
                        f"{answer.status_code} {what}: {case}: {answer.text[:300]}"
                    )
    result.cases, result.routes = (
        len(picked),
        len({(one.method, one.route) for one in picked}),
    )
    after = standing(service.database)
    changed = [table for table in before if before[table] != after[table]]
    result.findings += [f"rows of {table} changed" for table in changed]
    return result
