"""Notices from the dead letter to the receiver: a worker, a database and an HTTP server."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from support.store import install
from tenure import Tenure
from tenure.admin import By

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping

    from support.databases import Databases

KEY = b"0123456789abcdef0123456789abcdef"
BY = By("ada")
PASSWORD = "hunter2-and-more"  # noqa: S105 - it must not leave


class Receiver:
    """A server that keeps what it gets. It answers with each of `statuses`, then with 204."""

    def __init__(self) -> None:
        self.requests: list[tuple[Mapping[str, str], bytes]] = []
        self.statuses: list[int] = []
        self.url = ""

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(body) for _, body in self.requests]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with _serving(Receiver()) as served:
        yield served


@contextmanager
def _serving(receiver: Receiver) -> Iterator[Receiver]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            receiver.requests.append(({k.lower(): v for k, v in self.headers.items()}, body))
            self.send_response(receiver.statuses.pop(0) if receiver.statuses else 204)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    receiver.url = f"http://localhost:{server.server_address[1]}/hook"
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


@pytest.fixture
async def app(
    databases: Databases, monkeypatch: pytest.MonkeyPatch, configured: Any, receiver: Receiver
) -> AsyncIterator[Tenure]:
    url = databases.create(databases.template("tenure", install))
    port = int(receiver.url.split(":")[2].split("/")[0])
    configured(allow=[f"localhost:{port}"], secrets={"ops": [f"http://localhost:{port}"]})
    monkeypatch.setenv("TENURE_SECRET_OPS", f"whsec_{base64.b64encode(KEY).decode()}")
    monkeypatch.setenv("TENURE_PUBLIC_URL", "https://jobs.example.com")
    app = Tenure(url)

    @app.task(max_attempts=1)
    async def fail(password: str, text: str = "out of order") -> None:
        raise ValueError(f"{text}, password={password}")

    yield app
    app.close()
    await app.aclose()
    databases.drop(url)


async def until(app: Tenure, condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20), app.run(kinds=["http"], concurrency=4):
        while not condition():  # noqa: ASYNC110 - another thread makes it true
            await asyncio.sleep(0.01)


def add(app: Tenure, receiver: Receiver, **fields: Any) -> None:
    given = {"url": receiver.url, "secret": "ops", **fields}
    app.admin.notices.add("ops", "failed", BY, **given)


def enqueue(app: Tenure, count: int = 1, **args: Any) -> None:
    name = next(each for each in app.tasks.names if each.endswith("fail"))
    for _ in range(count):
        app.admin.jobs.enqueue(name, {"password": PASSWORD, **args}, BY, max_attempts=1)


async def test_a_dead_letter_calls_a_signed_webhook(app: Tenure, receiver: Receiver) -> None:
    """Shows R15."""
    add(app, receiver)
    enqueue(app)
    await until(app, lambda: bool(receiver.requests))
    [(headers, body)] = receiver.requests
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    expected = base64.b64encode(hmac.digest(KEY, signed, hashlib.sha256)).decode()
    assert headers["webhook-signature"] == f"v1,{expected}"
    [notice] = receiver.bodies
    data = notice["data"]
    assert notice["type"] == "job.failed"
    assert (data["rule"], data["count"], data["queue"]) == ("ops", 1, "default")
    assert data["url"] == f"https://jobs.example.com/jobs/{data['job_id']}"
    assert data["error"].startswith("out of order")
    assert PASSWORD not in body.decode()


async def test_a_receiver_that_fails_gets_the_same_notice_again(
    app: Tenure, receiver: Receiver
) -> None:
    receiver.statuses = [500, 503]
    add(app, receiver)
    enqueue(app)

    def hurry() -> bool:
        # The backoff is 10 s; make its jobs due.
        with app.engine.session() as session:
            session.run(_raw("UPDATE tenure.job SET run_at = created_at WHERE attempt > 0"))
        return len(receiver.requests) == 3

    await until(app, hurry)
    assert len({headers["webhook-id"] for headers, _ in receiver.requests}) == 1
    assert len({body for _, body in receiver.requests}) == 1


def _raw(text: str) -> Any:
    from tenure._store.steps import RawSql  # noqa: PLC0415 - one use

    return (yield RawSql(text))


async def test_slack_gets_its_format_at_the_secret_url(
    app: Tenure, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TENURE_SECRET_OPS", receiver.url)
    add(app, receiver, url=None, format="slack")
    enqueue(app, text="<!channel> *now*")
    await until(app, lambda: bool(receiver.requests))
    [body] = receiver.bodies
    assert set(body) == {"text", "blocks"}
    assert "<!channel>" not in json.dumps(body)


async def test_pagerduty_gets_the_routing_key(app: Tenure, receiver: Receiver) -> None:
    add(app, receiver, format="pagerduty")
    enqueue(app)
    await until(app, lambda: bool(receiver.requests))
    [body] = receiver.bodies
    assert body["routing_key"] == f"whsec_{base64.b64encode(KEY).decode()}"
    assert (body["event_action"], body["payload"]["severity"]) == ("trigger", "error")


async def test_a_routing_key_stays_with_its_hosts(
    app: Tenure, receiver: Receiver, configured: Any
) -> None:
    configured(allow=["localhost"])
    add(app, receiver, format="pagerduty")
    job_id = app.admin.notices.test("ops", BY)
    assert job_id is not None

    def refused() -> bool:
        return bool(app.admin.jobs.attempts(job_id))

    await until(app, refused)
    [attempt] = app.admin.jobs.attempts(job_id)
    assert attempt.error_message is not None
    assert "must not be sent to localhost" in attempt.error_message
    assert receiver.requests == []


async def test_a_test_notice_arrives(app: Tenure, receiver: Receiver) -> None:
    add(app, receiver)
    assert app.admin.notices.test("ops", BY) is not None
    await until(app, lambda: bool(receiver.requests))
    assert receiver.bodies[0]["type"] == "notice.test"


async def test_a_removed_rules_notice_is_not_sent(app: Tenure, receiver: Receiver) -> None:
    add(app, receiver)
    job_id = app.admin.notices.test("ops", BY)
    assert job_id is not None
    app.admin.notices.remove(["ops"], BY)

    def over() -> bool:
        job = app.admin.jobs.get(job_id)
        return job is not None and job.result is not None

    await until(app, over)
    job = app.admin.jobs.get(job_id)
    assert job is not None
    assert job.result == {"sent": False, "reason": "the notice rule ops no longer exists"}
    assert receiver.requests == []


async def test_a_rule_declared_in_code_is_stored_by_its_worker(
    app: Tenure, receiver: Receiver
) -> None:
    app.notify("failed", to=receiver.url, secret="ops")  # noqa: S106 - a name
    enqueue(app)
    await until(app, lambda: bool(app.admin.notices.list()))
    [rule] = app.admin.notices.list()
    assert (rule.program, rule.name) == (app.program, f"{app.program}:failed:ops")
    enqueue(app)
    await until(app, lambda: bool(receiver.requests))
