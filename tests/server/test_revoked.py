"""A revoked token ends requests that are waiting, and what happened is in the audit."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait
from time import monotonic
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx
import pytest

from support.processes import wait_for
from support.serving import OPS, serving
from support.store import install

if TYPE_CHECKING:
    from support.databases import Databases
    from tenure.types import AuditRow
    from tests.server.conftest import Service


def test_a_waiting_worker_gets_no_job_after_its_token_is_revoked(service: Service) -> None:
    """Before, it got one with its payload, up to 55 s later, and could not settle it."""
    made = service.admin.tokens.create("worker", OPS, scopes=["work"])
    headers = {"Authorization": f"Bearer {made.secret}"}
    body = {"queues": ["late"], "worker": {"name": "w"}, "wait": 50}

    def acquire() -> httpx.Response:
        url = f"{service.url}/v1/leases:acquire"
        return httpx.post(url, json=body, headers=headers, timeout=60)

    with ThreadPoolExecutor(1) as pool, service.caller() as caller:
        waiting = pool.submit(acquire)
        assert wait_for(lambda: "tenure_server_acquires_waiting 1" in _metrics(caller), 20)
        service.admin.tokens.revoke([made.token.id], OPS)
        # Two seconds, and the time that a loaded machine needs.
        wait([waiting], timeout=10)
        is_answered, job = waiting.done(), service.enqueue("late")
        answer = waiting.result(60)
        assert (answer.status_code, is_answered) == (401, True)
        assert caller.get(f"/v1/jobs/{job}").json()["state"] == "queued"


def _metrics(caller: httpx.Client) -> str:
    return caller.get("/metrics").text


def test_an_event_stream_ends_with_its_session(service: Service) -> None:
    with service.browser() as browser:
        [session, *_] = service.admin.sessions.list(active=True)
        with browser.stream("GET", "/events") as stream:
            lines = stream.iter_lines()
            assert next(lines) == "retry: 1000"
            service.admin.sessions.revoke([session.id], OPS)
            began = monotonic()
            for _ in lines:
                pass
            assert monotonic() - began < 20


def test_the_cookie_is_a_session_of_this_port_that_signing_out_ends(service: Service) -> None:
    """Before, it was the access token, and every server on another port of the host got it."""
    with service.browser() as browser:
        [(name, value)] = browser.cookies.items()
        assert name == f"tenure_{urlsplit(service.url).port}"
        assert service.secret not in value
        assert browser.get("/queues").status_code == 200
        bearer = {"Authorization": f"Bearer {value}"}
        assert httpx.get(f"{service.url}/v1/queues", headers=bearer).status_code == 401
        form = {"mark": service.mark(browser)}
        assert browser.post("/sign-out", data=form).status_code == 303
    stolen = httpx.get(f"{service.url}/queues", cookies={name: value})
    assert stolen.status_code == 401


def audited(service: Service, action: str) -> list[AuditRow]:
    return list(service.admin.audit.search(action=action).rows)


def test_failures_are_counted_in_the_audit_by_address(service: Service) -> None:
    wrong = {"Authorization": "Bearer tnr_wrong"}
    for _ in range(30):
        assert httpx.get(f"{service.url}/v1/queues", headers=wrong).status_code == 401
    assert httpx.post(f"{service.url}/sign-in", data={"token": "x"}).status_code == 401
    assert wait_for(lambda: bool(audited(service, "authentication.failed")), 10)
    rows = audited(service, "authentication.failed")
    assert len(rows) == 1
    assert rows[0].address == "127.0.0.1"
    assert "authentication failed, address=127.0.0.1 count=" in service.words.read_text()


def test_payload_reads_and_exports_are_in_the_audit(service: Service) -> None:
    job = service.enqueue("read.me")
    with service.caller("read", "payload:read") as reader, service.caller("read") as blind:
        for _ in range(3):
            assert reader.get(f"/v1/jobs/{job}").status_code == 200
        assert blind.get(f"/v1/jobs/{job}").status_code == 200
    with service.browser() as browser:
        assert browser.get("/audit/export").status_code == 200
        assert browser.get("/jobs.ndjson?filter=queue:read.me").status_code == 200
    assert wait_for(lambda: len(audited(service, "export")) == 2, 10)
    rows = [row for row in audited(service, "payload.read") if row.target == f"job:{job}"]
    assert len(rows) == 1
    assert (rows[0].source, rows[0].address) == ("http", "127.0.0.1")
    assert {row.target for row in audited(service, "export")} == {"audit", "jobs"}
    [signed_in, *_] = audited(service, "session.sign_in")
    assert signed_in.address == "127.0.0.1"


@pytest.fixture(scope="module")
def behind(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A server behind a proxy on this machine that signs users in."""
    database = databases.create(databases.template("tenure", install))
    options = (
        *("--public-url", "https://jobs.example.com", "--trusted-proxies", "127.0.0.2"),
        *("--proxy-user-header", "X-Forwarded-User"),
        *("--proxy-roles", "ana=operator", "--proxy-roles", "bo=viewer"),
    )
    with serving(database, tmp_path_factory.mktemp("server"), *options) as service:
        yield service
    databases.drop(database)


PAGE = {"Host": "jobs.example.com", "Accept": "text/html", "X-Forwarded-For": "198.51.100.7"}


def proxied(service: Service, address: str) -> httpx.Client:
    """A client with this address of its own, as a proxy or an attacker on this machine has."""
    transport = httpx.HTTPTransport(local_address=address)
    return httpx.Client(base_url=service.url, transport=transport, headers=PAGE, timeout=30)


def test_only_a_trusted_proxy_names_users(behind: Service) -> None:
    with proxied(behind, "127.0.0.2") as proxy, proxied(behind, "127.0.0.3") as attacker:
        ana = {"X-Forwarded-User": "ana"}
        assert attacker.get("/", headers=ana).status_code == 401
        assert attacker.get("/sign-in", headers=ana).status_code == 200
        refused = proxy.get("/sign-in", headers={"X-Forwarded-User": "eve"})
        assert refused.status_code == 401
        assert "set-cookie" not in refused.headers
        assert proxy.get("/", headers=ana).headers["location"] == "/sign-in?to=%2F"
        answer = proxy.get("/sign-in?to=/queues", headers=ana)
        assert (answer.status_code, answer.headers["location"]) == (303, "/queues")
        cookie = answer.headers["set-cookie"]
        assert cookie.startswith("__Host-tenure_443=tns_")
        assert {"Secure", "HttpOnly", "Path=/", "SameSite=strict"} <= set(cookie.split("; "))
        session = {"Cookie": cookie.partition(";")[0]}
        assert proxy.get("/queues", headers=ana | session).status_code == 200
        # Another user behind the same proxy, and a client that avoids the proxy, cannot use it.
        other = {"X-Forwarded-User": "bo"}
        assert proxy.get("/queues", headers=other | session).status_code == 303
        assert attacker.get("/queues", headers=ana | session).status_code == 401
    [row] = [row for row in behind.admin.sessions.list() if row.provider == "proxy"]
    assert (row.name, row.address) == ("ana", "198.51.100.7")
    [signed_in] = [row for row in audited(behind, "session.sign_in") if row.actor == "user:ana"]
    assert signed_in.address == "198.51.100.7"


def test_hosts_origins_and_https_follow_the_public_url(behind: Service) -> None:
    with proxied(behind, "127.0.0.3") as client:
        live = client.get("/live")
        assert live.headers["strict-transport-security"] == "max-age=31536000"
        assert client.get("/live", headers={"Host": "evil.example"}).status_code == 421
        assert client.get("/live", headers={"Host": "127.0.0.1:80"}).status_code == 200
        form = {"token": behind.secret}
        own = {"Origin": "https://jobs.example.com"}
        assert client.post("/sign-in", data=form, headers=own).status_code == 303
        plain = {"Origin": "http://jobs.example.com"}
        assert client.post("/sign-in", data=form, headers=plain).status_code == 403


def test_a_loopback_server_refuses_names_that_lead_to_it(service: Service) -> None:
    """A page elsewhere can make its own name lead to 127.0.0.1."""
    for host, status in (("evil.example", 421), ("localhost:1", 200), ("[::1]", 200)):
        assert httpx.get(f"{service.url}/live", headers={"Host": host}).status_code == status
    # It believes no proxy that it was not told of.
    https = {"X-Forwarded-Proto": "https"}
    answer = httpx.post(f"{service.url}/sign-in", data={"token": service.secret}, headers=https)
    assert "Secure" not in answer.headers["set-cookie"]
