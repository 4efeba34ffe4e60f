"""What is checked before a body is read, and what one client leaves for the others."""

from __future__ import annotations

import asyncio
import secrets
import select
import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import httpx
import psycopg
import pytest
from psycopg import sql

from support.processes import wait_for
from support.serving import OPS
from tenure import Tenure
from tenure._rules import access
from tenure.admin import SessionTerms
from tenure.errors import TokenRefused
from tenure.server import auth, create
from tenure.server.auth import TokenCache
from tenure.server.problems import ProblemError
from tenure.server.request_limits import MAX_BODY, MAX_FORM, MAX_JOB_BODY, MAX_OPEN_BODY
from tenure.server.session_cache import SessionCache
from tenure.server.strangers import Strangers
from tenure.server.throttle import Buckets
from tests.server.test_hostile import answered, connect

if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncIterator, Iterator

    from tests.server.conftest import Service


def made_up() -> str:
    """A token that looks right."""
    return access.secret(secrets.token_bytes(access.ENTROPY))


@pytest.mark.parametrize(
    ("header", "word"),
    [
        ("", "send an access token"),
        ("Authorization: Basic eDp5\r\n", "send an access token"),
        ("Authorization: Bearer tnr_" + "A" * 49 + "\r\n", "malformed"),
        (f"Authorization: Bearer {made_up()}\r\n", "unknown"),
    ],
    ids=["none", "basic", "malformed", "made up"],
)
@pytest.mark.parametrize("path", ["/v1/jobs:batch", "/v1/leases:renew", "/v1/no-such-route"])
def test_a_body_without_an_access_token_is_not_read(
    service: Service, header: str, word: str, path: str
) -> None:
    """4 MiB of brackets took 0.8 s of the server before it asked for a token."""
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{header}Content-Length: {MAX_BODY}\r\n\r\n"
    with connect(service) as requested:
        requested.sendall(head.encode())
        answer = answered(requested)
    assert answer.startswith(b"HTTP/1.1 401"), answer
    assert word.encode() in answer


@pytest.mark.parametrize(
    ("path", "headers", "most"),
    [
        ("/sign-in", {}, MAX_OPEN_BODY),
        ("/sign-out", {"Cookie": "tenure=x"}, MAX_FORM),
        ("/v1/jobs", {}, MAX_JOB_BODY),
        ("/v1/schedules", {}, MAX_JOB_BODY),
        ("/v1/jobs:batch", {}, MAX_BODY),
        ("/v1/leases:settle", {}, MAX_BODY),
    ],
)
def test_a_body_has_the_limit_of_its_route(
    service: Service, path: str, headers: dict[str, str], most: int
) -> None:
    if path.startswith("/v1"):
        headers = {"Authorization": f"Bearer {service.secret}"}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    with connect(service) as requested:
        lines += f"Host: 127.0.0.1\r\nContent-Length: {most + 1}\r\n"
        head = f"POST {path} HTTP/1.1\r\n{lines}\r\n"
        requested.sendall(head.encode())
        assert answered(requested).startswith(b"HTTP/1.1 413")
    with httpx.Client(base_url=service.url, headers=headers, timeout=30) as caller:
        assert caller.post(path, content=b" " * most).status_code in (401, 403, 422)


def test_one_job_may_be_as_large_as_its_arguments_written_with_escapes(service: Service) -> None:
    body = '{"task": "t", "args": {"a": "%s"}}' % ("\\u00e9" * 130_000)
    with service.caller() as caller:
        answer = caller.post("/v1/jobs", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 201, answer.text


def test_a_list_does_not_read_large_arguments(service: Service) -> None:
    """Before, one look at a list redacted up to 200 times 256 KiB."""
    small = service.enqueue("large", args={"s": "x" * 100})
    large = service.enqueue("large", args={"s": "x" * 10_000})
    with service.caller() as caller:
        for params in ({"state": "queued", "queue": "large"}, {"filter": "queue:large"}):
            jobs = caller.get("/v1/jobs", params=params).json()["jobs"]
            listed = {one["id"]: one["args"] for one in jobs}
            assert listed[large] is None
            assert listed[small] == {"s": "x" * 100}
        assert caller.get(f"/v1/jobs/{large}").json()["args"] == {"s": "x" * 10_000}


def test_answers_are_not_stored_nor_guessed(service: Service) -> None:
    with service.caller() as caller:
        for path in ("/live", "/ready", "/metrics", "/v1/queues", "/v1/jobs/0", "/openapi.json"):
            answer = caller.get(path)
            assert answer.headers["cache-control"] == "no-store", path
            assert answer.headers["x-content-type-options"] == "nosniff", path
        assert httpx.get(f"{service.url}/v1/queues").headers["cache-control"] == "no-store"
        assert "immutable" in caller.get("/static/tenure.css").headers["cache-control"]


async def test_an_error_that_was_not_expected_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    api = create(Tenure("postgresql://nobody@127.0.0.1:1/none"))

    @api.get("/breaks")
    async def breaks() -> None:
        raise ZeroDivisionError("broken")

    transport = httpx.ASGITransport(api, raise_app_exceptions=True)
    async with httpx.AsyncClient(transport=transport, base_url="http://x") as caller:
        answer = await caller.get("/breaks")
    assert (answer.status_code, answer.json()["code"]) == (500, "internal")
    assert [record.getMessage() for record in caplog.records] == ["server: request failed"]


@contextmanager
def locked(service: Service, table: str) -> Iterator[psycopg.Connection[tuple[int]]]:
    """Nothing reads this table meanwhile. Another connection, to watch."""
    with (
        psycopg.connect(service.database) as locking,
        psycopg.connect(service.database, autocommit=True) as watching,
    ):
        name = sql.Identifier("tenure", table)
        locking.execute(sql.SQL("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE").format(name))
        yield watching


def waiting(watching: psycopg.Connection[tuple[int]]) -> int:
    """How many connections wait for a lock."""
    row = watching.execute("SELECT count(*) FROM pg_locks WHERE NOT granted").fetchone()
    assert row is not None
    return row[0]


@pytest.fixture
async def tokens(service: Service) -> AsyncIterator[TokenCache]:
    """A cache of its own in this process, on the database of the server."""
    app = Tenure(service.database)
    yield TokenCache(Strangers(app), app.admin)
    await app.aclose()


async def until_waiting(watching: psycopg.Connection[tuple[int]], count: int) -> None:
    async with asyncio.timeout(10):
        while waiting(watching) < count:  # noqa: ASYNC110 - the database sets no event
            await asyncio.sleep(0.02)


async def test_a_refused_token_is_refused_again_without_a_query(
    service: Service, tokens: TokenCache
) -> None:
    secret = made_up()
    for _ in range(2):
        with pytest.raises(TokenRefused, match="unknown"):
            await tokens.find(secret)
        with locked(service, "api_token") as watching:
            for word in (secret, "tnr_short"):
                with pytest.raises(TokenRefused):
                    await asyncio.wait_for(tokens.find(word), 1)
            assert not waiting(watching)


async def test_equal_tokens_share_a_query_and_strangers_have_two_connections(
    service: Service, tokens: TokenCache
) -> None:
    made = service.admin.tokens.create("shared", OPS, scopes=["read"])
    with locked(service, "api_token") as watching:
        equal = [asyncio.create_task(tokens.find(made.secret)) for _ in range(50)]
        await until_waiting(watching, 1)
        await asyncio.sleep(0.2)
        assert waiting(watching) == 1
        others = [asyncio.create_task(tokens.find(made_up())) for _ in range(50)]
        await until_waiting(watching, 2)
        await asyncio.sleep(0.2)
        assert waiting(watching) == 2
    assert {row.id for row in await asyncio.gather(*equal)} == {made.token.id}
    refusals = await asyncio.gather(*others, return_exceptions=True)
    assert all(isinstance(one, TokenRefused) for one in refusals)


async def test_an_address_has_a_number_of_tries_and_a_known_token_needs_none(
    service: Service, tokens: TokenCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auth, "FRESH", 0.0)
    monkeypatch.setattr(auth, "SLOWED", 0.3)
    tokens._strangers._tries = Buckets(burst=3, per_second=0.001)
    tokens._refusals = Buckets(burst=3, per_second=0.001)
    made = service.admin.tokens.create("known", OPS, scopes=["read"])
    for _ in range(5):
        assert (await tokens.find(made.secret, address="a")).id == made.token.id
    for _ in range(3):
        with pytest.raises(TokenRefused):
            await tokens.find(made_up(), address="a")
    began = time.monotonic()
    with pytest.raises(ProblemError) as refused:
        await tokens.find(made_up(), address="a")
    assert refused.value.code == "too-many-requests"
    with pytest.raises(TokenRefused):
        await tokens.find("malformed", address="a")
    assert time.monotonic() - began >= 0.3
    assert (await tokens.find(made.secret, address="a")).id == made.token.id
    with pytest.raises(TokenRefused):
        await tokens.find(made_up(), address="b")


def unknown_session() -> str:
    return access.SESSION_PREFIX + secrets.token_urlsafe(access.ENTROPY)


async def test_an_address_has_as_many_tries_with_made_up_sessions(
    service: Service,
) -> None:
    app = Tenure(service.database)
    strangers = Strangers(app)
    strangers._tries = Buckets(burst=3, per_second=0.001)
    sessions = SessionCache(strangers, app.admin)
    made = service.admin.tokens.create("visitor", OPS, scopes=["read"])
    opened = service.admin.sessions.sign_in(made.secret, SessionTerms())
    for _ in range(5):
        await sessions.find(opened.secret, in_use=True, address="a")
    for _ in range(3):
        with pytest.raises(TokenRefused):
            await sessions.find(unknown_session(), in_use=True, address="a")
    with pytest.raises(ProblemError) as refused:
        await sessions.find(unknown_session(), in_use=True, address="a")
    assert refused.value.code == "too-many-requests"
    row, _ = await sessions.find(opened.secret, in_use=True, address="a")
    assert row.id == opened.session.id
    await app.aclose()


def lease(caller: httpx.Client, service: Service, queue: str) -> str:
    service.enqueue(queue)
    request = {"queues": [queue], "worker": {"name": "w"}}
    return str(caller.post("/v1/leases:acquire", json=request).json()["jobs"][0]["lease"])


@pytest.mark.parametrize(
    ("table", "path", "requests", "refused"),
    # Fewer than there will be: on a slow machine some come when others have given up.
    [("setting", "/v1/settings", 150, 10), ("audit", "/v1/audit", 40, 10)],
    ids=["all connections taken", "searches"],
)
def test_leases_are_renewed_while_everything_else_waits(
    service: Service, table: str, path: str, requests: int, refused: int
) -> None:
    """Requests beyond the connections and those that may wait are refused at once, with 429."""
    token = f"Authorization: Bearer {service.secret}\r\n"
    head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{token}\r\n"
    with service.caller() as worker, ExitStack() as opened:
        held = lease(worker, service, f"renewed-{table}")
        with locked(service, table) as watching:
            others = [opened.enter_context(connect(service)) for _ in range(requests)]
            for other in others:
                other.sendall(head.encode())
            assert wait_for(lambda: len(readable(others)) >= refused, 20)
            busy = [answered(other) for other in readable(others)]
            assert wait_for(lambda: waiting(watching) >= 2, 10)
            took = []
            for _ in range(20):
                began = time.monotonic()
                answer = worker.post("/v1/leases:renew", json={"leases": [held]})
                took.append(time.monotonic() - began)
                assert answer.json()["leases"][0]["answer"] == "renewed"
            assert sorted(took)[10] < 0.5, took
    assert all(one.startswith(b"HTTP/1.1 429") for one in busy), busy
    assert all(b"retry-after: 1" in one and b"too-many-requests" in one for one in busy)


def readable(others: list[socket.socket]) -> list[socket.socket]:
    return select.select(others, [], [], 0)[0]


def test_events_are_for_readers_and_a_reader_has_twenty(service: Service) -> None:
    work = service.admin.tokens.create("work", OPS, scopes=["work"]).secret
    read = service.admin.tokens.create("read", OPS, scopes=["read"]).secret
    place = urlsplit(service.url)

    with ExitStack() as opened:

        def listen(client: httpx.Client) -> bytes:
            listening = opened.enter_context(connect(service))
            [(name, value)] = client.cookies.items()
            head = f"GET /events HTTP/1.1\r\nHost: {place.netloc}\r\nCookie: {name}={value}"
            listening.sendall(f"{head}\r\n\r\n".encode())
            return listening.recv(15)[9:12]

        assert listen(opened.enter_context(service.browser(work))) == b"403"
        reader = opened.enter_context(service.browser(read))
        assert [listen(reader) for _ in range(21)] == [b"200"] * 20 + [b"429"]
