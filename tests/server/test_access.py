"""Every route, every scope, one's own queue and another's: who is let in, and who is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tenure.admin import By
from tenure.types import Scope

if TYPE_CHECKING:
    from tests.server.conftest import Service

OPEN = {("GET", "/live")}
ME = {"name": "here"}
LEASE = "tl_" + "A" * 51
WORKER = "00000000-0000-0000-0000-000000000001"
OPS = By("ops")

# What each route needs; lists are answered to anybody with the scope, and show what is allowed.
A_RULE = {"name": "own", "event": "failed", "url": "https://example.com/x", "secret": "ops"}
NEEDS: dict[tuple[str, str], tuple[Scope | None, dict[str, Any] | None]] = {
    ("GET", "/ready"): (None, None),
    ("POST", "/v1/jobs"): (Scope.ENQUEUE, {"task": "t", "queue": "own"}),
    ("POST", "/v1/jobs:batch"): (Scope.ENQUEUE, {"jobs": [{"task": "t", "queue": "own"}]}),
    ("GET", "/v1/jobs"): (Scope.READ, None),
    ("GET", "/v1/jobs/{job_id}"): (Scope.READ, None),
    ("GET", "/v1/jobs/{job_id}/attempts"): (Scope.READ, None),
    ("GET", "/v1/jobs/{job_id}/items"): (Scope.READ, None),
    ("GET", "/v1/jobs/{job_id}/operations"): (Scope.READ, None),
    ("GET", "/v1/jobs/{job_id}/why"): (Scope.READ, None),
    ("POST", "/v1/jobs/{job_id}:move"): (Scope.OPERATE, {"priority": 3}),
    ("PATCH", "/v1/jobs/{job_id}"): (Scope.OPERATE, {"priority": 3}),
    ("POST", "/v1/jobs/{job_id}:rerun"): (Scope.OPERATE, {}),
    ("DELETE", "/v1/jobs/{job_id}"): (Scope.OPERATE, None),
    ("GET", "/v1/stats"): (Scope.READ, None),
    ("GET", "/v1/overview"): (Scope.READ, None),
    ("GET", "/v1/failed/groups"): (Scope.READ, None),
    ("POST", "/v1/operations"): (
        Scope.OPERATE,
        {"kind": "cancel", "filter": {"state": "queued", "queue": "own"}, "dry_run": True},
    ),
    ("POST", "/v1/operations:erase"): (
        Scope.ADMIN,
        {"filter": "tag:customer:7", "reason": "ticket 12", "dry_run": True},
    ),
    ("GET", "/v1/operations"): (Scope.READ, None),
    ("GET", "/v1/operations/{operation_id}"): (Scope.READ, None),
    ("GET", "/v1/operations/{operation_id}/items"): (Scope.READ, None),
    ("POST", "/v1/operations/{operation_id}:pause"): (Scope.OPERATE, {}),
    ("POST", "/v1/operations/{operation_id}:resume"): (Scope.OPERATE, {}),
    ("POST", "/v1/operations/{operation_id}:abort"): (Scope.OPERATE, {}),
    ("POST", "/v1/jobs/{job_id}:retry"): (Scope.OPERATE, {}),
    ("POST", "/v1/jobs/{job_id}:cancel"): (Scope.OPERATE, {}),
    ("POST", "/v1/jobs/{job_id}:revoke"): (Scope.OPERATE, {}),
    ("POST", "/v1/jobs/{job_id}:hold"): (Scope.OPERATE, {}),
    ("POST", "/v1/jobs/{job_id}:resume"): (Scope.OPERATE, {}),
    ("GET", "/v1/leases"): (Scope.READ, None),
    ("POST", "/v1/leases:acquire"): (Scope.WORK, {"queues": ["own"], "worker": ME}),
    ("POST", "/v1/leases:renew"): (Scope.WORK, {"leases": [LEASE]}),
    ("POST", "/v1/leases:progress"): (Scope.WORK, {"lease": LEASE}),
    ("POST", "/v1/leases:complete"): (Scope.WORK, {"lease": LEASE}),
    ("POST", "/v1/leases:fail"): (Scope.WORK, {"lease": LEASE, "error": {"type": "E"}}),
    ("POST", "/v1/leases:release"): (Scope.WORK, {"lease": LEASE}),
    ("POST", "/v1/leases:settle"): (Scope.WORK, {"endings": [{"release": {"lease": LEASE}}]}),
    ("POST", "/v1/schedules"): (
        Scope.OPERATE,
        {"name": "made", "task": "t", "every": 60, "queue": "own"},
    ),
    ("POST", "/v1/schedules:preview"): (Scope.READ, {"every": 60}),
    ("GET", "/v1/schedules"): (Scope.READ, None),
    ("GET", "/v1/schedules/{name}"): (Scope.READ, None),
    ("PATCH", "/v1/schedules/{name}"): (Scope.OPERATE, {"jitter": 1}),
    ("DELETE", "/v1/schedules/{name}"): (Scope.OPERATE, None),
    ("GET", "/v1/schedules/{name}/runs"): (Scope.READ, None),
    ("GET", "/v1/schedules/{name}/ticks"): (Scope.READ, None),
    ("POST", "/v1/schedules/{name}:pause"): (Scope.OPERATE, {}),
    ("POST", "/v1/schedules/{name}:resume"): (Scope.OPERATE, {}),
    ("POST", "/v1/schedules/{name}:run"): (Scope.OPERATE, {}),
    ("POST", "/v1/schedules/{name}:backfill"): (
        Scope.OPERATE,
        {"since": "2030-01-01T00:00Z", "until": "2030-01-01T00:00Z", "dry_run": True},
    ),
    ("GET", "/v1/queues"): (Scope.READ, None),
    ("GET", "/v1/queues/throughput"): (Scope.READ, None),
    ("POST", "/v1/queues/{name}:pause"): (Scope.OPERATE, {}),
    ("POST", "/v1/queues/{name}:resume"): (Scope.OPERATE, {}),
    ("POST", "/v1/queues/{name}:limit"): (Scope.OPERATE, {"max_running": None}),
    ("POST", "/v1/queues/{name}:configure"): (
        Scope.OPERATE,
        {"lease": None, "max_attempts": None},
    ),
    ("POST", "/v1/queues/{name}:quota"): (Scope.ADMIN, {"quotas": {}}),
    ("POST", "/v1/keys:free"): (Scope.OPERATE, {"task": "t", "key": "none"}),
    ("GET", "/v1/workers"): (Scope.READ, None),
    ("POST", "/v1/workers/{worker_id}:drain"): (Scope.OPERATE, {}),
    ("GET", "/v1/settings"): (Scope.READ, None),
    ("PUT", "/v1/settings/{name}"): (Scope.ADMIN, {"value": 30}),
    ("DELETE", "/v1/settings/{name}"): (Scope.ADMIN, None),
    ("GET", "/v1/audit"): (Scope.READ, None),
    ("GET", "/v1/system"): (Scope.READ, None),
    ("GET", "/v1/doctor"): (Scope.READ, None),
    ("GET", "/metrics"): (Scope.READ, None),
    ("POST", "/v1/tokens"): (Scope.ADMIN, {"name": "t", "scopes": ["read"]}),
    ("GET", "/v1/tokens"): (Scope.ADMIN, None),
    ("POST", "/v1/tokens/{token_id}:quota"): (Scope.ADMIN, {"quotas": {}}),
    ("POST", "/v1/tokens/{token_id}:revoke"): (Scope.ADMIN, {}),
    ("GET", "/v1/sessions"): (Scope.ADMIN, None),
    ("POST", "/v1/sessions/{session_id}:revoke"): (Scope.ADMIN, {}),
    ("GET", "/v1/notices"): (Scope.ADMIN, None),
    ("POST", "/v1/notices"): (Scope.ADMIN, A_RULE),
    ("POST", "/v1/notices/{name}:test"): (Scope.ADMIN, {}),
    ("POST", "/v1/notices/{name}:remove"): (Scope.ADMIN, {}),
}
# A token with the scope gets an answer for any queue: its own rows, or by the lease.
FOR_EVERYBODY = {
    "/ready",
    "/v1/jobs",
    "/v1/queues",
    "/v1/workers",
    "/v1/queues/throughput",
    "/v1/leases",
    "/v1/operations",
    "/v1/schedules",
    "/v1/schedules:preview",
    "/v1/sessions",
    "/v1/tokens",
} | {
    f"/v1/leases:{verb}" for verb in ("renew", "progress", "complete", "fail", "release", "settle")
}
# Whose scope does not do alone.
NEEDS_ANOTHER = {
    ("GET", "/v1/jobs/{job_id}/items"),
    ("POST", "/v1/jobs/{job_id}:rerun"),
    ("POST", "/v1/schedules"),
}
QUERIES = {"/v1/jobs": {"state": "queued"}, "/v1/audit": {"target": "queue:own"}}
Routes = list[tuple[str, str]]
Ask = Callable[[httpx.Client, str, str, str], httpx.Response]


@pytest.fixture(scope="module")
def routes(service: Service) -> Routes:
    """All that the server says it has."""
    with service.caller("read") as caller:
        document = caller.get("/openapi.json").json()
    return [(m.upper(), path) for path, methods in document["paths"].items() for m in methods]


@pytest.fixture
def ask(service: Service) -> Ask:
    """Sends a request that fits the route, to things that are there, in the queue `own`."""

    def ask(caller: httpx.Client, method: str, path: str, job_id: str) -> httpx.Response:
        if service.admin.schedules.get("own") is None:
            service.admin.schedules.create("own", "t", OPS, every=60, queue="own")
        return _ask(caller, method, path, job_id)

    return ask


def _ask(caller: httpx.Client, method: str, path: str, job_id: str) -> httpx.Response:
    ids = {"worker_id": WORKER, "token_id": "999999", "operation_id": "999999"}
    ids["session_id"] = "999999"
    place = path.format(job_id=job_id, name="own", **ids)
    if path == "/v1/settings/{name}":
        place = "/v1/settings/lease"
    _, body = NEEDS[method, path]
    return caller.request(method, place, json=body, params=QUERIES.get(path))


def test_the_table_has_every_route(routes: Routes) -> None:
    assert set(routes) == NEEDS.keys() | OPEN


def test_without_a_token_nothing_but_health_is_answered(
    service: Service, routes: Routes, ask: Ask
) -> None:
    with httpx.Client(base_url=service.url) as no_one:
        for method, path in routes:
            if (method, path) in OPEN:
                assert no_one.request(method, path).status_code == 200
                continue
            answer = ask(no_one, method, path, "1")
            assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated"), path
            assert answer.headers["www-authenticate"].startswith("Bearer")


@pytest.mark.parametrize(
    "secret",
    ["x", "tnr_" + "A" * 49, "Basic eDp5"],
)
def test_malformed_token_is_refused(service: Service, secret: str) -> None:
    answer = httpx.get(f"{service.url}/v1/queues", headers={"Authorization": f"Bearer {secret}"})

    assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")


def test_a_revoked_token_is_let_in_no_more(service: Service) -> None:
    made = service.admin.tokens.create("gone", OPS, scopes=["read"])
    service.admin.tokens.revoke([made.token.id], OPS)
    headers = {"Authorization": f"Bearer {made.secret}"}

    answer = httpx.get(f"{service.url}/v1/queues", headers=headers)

    assert answer.status_code == 401
    assert "revoked" in answer.json()["detail"]


@pytest.mark.parametrize("scope", Scope)
def test_a_scope_opens_its_own_routes_and_no_others(
    service: Service, routes: Routes, ask: Ask, scope: Scope
) -> None:
    job_id = service.enqueue("own")
    with service.caller(scope) as caller:
        for method, path in routes:
            if (method, path) in OPEN:
                continue
            answer = ask(caller, method, path, job_id)
            needed, _ = NEEDS[method, path]
            if needed is None or scope in (needed, Scope.ADMIN):
                refused = answer.status_code in (401, 403)
                assert not refused or (method, path) in NEEDS_ANOTHER, path
            else:
                assert answer.status_code == 403, (path, answer.text)


@pytest.mark.parametrize("scope", Scope)
def test_another_queue_stays_closed(
    service: Service, routes: Routes, ask: Ask, scope: Scope
) -> None:
    job_id = service.enqueue("own", args={"secret-of": "own"})
    with service.caller(scope, queues=("other", "other.*")) as caller:
        for method, path in routes:
            if (method, path) in OPEN:
                continue
            answer = ask(caller, method, path, job_id)
            if path in FOR_EVERYBODY and (method == "GET" or ":" in path):
                assert f'"id":"{job_id}"' not in answer.text
                assert '"name":"own"' not in answer.text
                continue
            assert not answer.is_success, (method, path, answer.text)


def test_token_cannot_grant_more_than_it_has(service: Service) -> None:
    with service.caller("admin", queues=("mail.*",)) as some:
        refused = some.post("/v1/tokens", json={"name": "more", "scopes": ["read"]})
        allowed = some.post(
            "/v1/tokens", json={"name": "less", "scopes": ["read"], "queues": ["mail.out"]}
        )

    assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
    assert allowed.status_code == 201
    assert allowed.json()["secret"].startswith("tnr_")
