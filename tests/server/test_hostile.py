"""What a server is sent by those who mean it no good."""

from __future__ import annotations

import contextlib
import re
import select
import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import httpx
import pytest

from tenure.server.request_limits import MAX_BODY, MAX_DEPTH, depth
from tests.timing import median, seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.server.conftest import Service

JSON = {"Content-Type": "application/json"}
# U+2200 has the byte of a quotation mark.
DEEP_IN_UTF_16 = ('{"task":"t","args":' + '{"\u2200":' * 70 + "1" + "}" * 71).encode("utf-16-le")


@pytest.fixture
def caller(service: Service) -> Iterator[httpx.Client]:
    with service.caller() as caller:
        yield caller


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"[" * 100_000, 422, "invalid"),
        (b'{"task":"t","args":' + b'{"a":' * 70 + b"1" + b"}" * 71, 422, "invalid"),
        (b'{"task":"t","args":{"a":"\\u0000"}}', 422, "invalid"),
        (b'{"task":"t","args":{"a":"\\ud800"}}', 422, "invalid"),
        (b'{"task":"t","args":{"a":1e999}}', 422, "invalid"),
        (b'{"task":"t","args":{"a":' + b"9" * 5000 + b"}}", 400, "bad-request"),
        (b'{"task":"t","unknown":1}', 422, "invalid"),
        (b'{"task":', 422, "invalid"),
        (b"\xff\xfe", 400, "bad-request"),
        (DEEP_IN_UTF_16, 400, "bad-request"),
        (b"", 422, "invalid"),
        (b"x" * (MAX_BODY + 1), 413, "too-large"),
        (b'{"task":"t","args":{"a":"' + b"x" * 300_000 + b'"}}', 422, "invalid"),
    ],
    ids=[
        *("deep", "deeper", "NUL", "surrogate", "infinite", "huge number", "unknown field"),
        *("half", "no text", "UTF-16", "nothing", "too large", "payload too large"),
    ],
)
def test_it_is_refused_with_a_problem(
    caller: httpx.Client, body: bytes, status: int, code: str
) -> None:
    answer = caller.post("/v1/jobs", content=body, headers=JSON)

    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
    assert answer.headers["content-type"] == "application/problem+json"


def test_a_text_that_the_database_cannot_keep_is_invalid(caller: httpx.Client) -> None:
    """Found by Schemathesis."""
    answer = caller.post("/v1/queues/nul:pause", json={"reason": "a\x00b"})

    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")


@pytest.mark.parametrize(
    ("instant", "status"),
    [
        ("0512-04-23T04:01:36-16:48", 201),
        ("0001-01-01T00:00:00+14:00", 422),
        ("9999-12-31T23:59:59Z", 422),
        ("2030-01-01T00:00:00", 422),
    ],
)
def test_an_instant_of_any_zone_is_read_or_refused(
    caller: httpx.Client, instant: str, status: int
) -> None:
    """Found by Schemathesis: PostgreSQL refuses an offset beyond 15:59."""
    request = {"kind": "discard", "filter": {"created_before": instant}, "dry_run": True}

    assert caller.post("/v1/operations", json=request).status_code == status


def test_a_value_that_was_sent_is_not_sent_back(caller: httpx.Client) -> None:
    request = {"task": "t", "priority": "hunter2!", "hunter3": 1, "args": "hunter4"}

    answer = caller.post("/v1/jobs", json=request)

    assert answer.status_code == 422
    assert "hunter2" not in answer.text
    assert "hunter4" not in answer.text


def test_a_page_token_that_was_made_up_is_refused(caller: httpx.Client) -> None:
    for token in ("x", "1-99999999", "-1", "9" * 30, "'; DROP TABLE job; --"):
        answer = caller.get("/v1/jobs", params={"state": "queued", "page_token": token})
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid"), token


def connect(service: Service) -> socket.socket:
    place = urlsplit(service.url)
    return socket.create_connection((place.hostname or "", place.port or 0), timeout=40)


def answered(requested: socket.socket) -> bytes:
    """The answer, which is a problem and may come in parts."""
    answer = b""
    while not answer.endswith(b"}") and (more := requested.recv(4096)):
        answer += more
    return answer


def post(service: Service) -> bytes:
    return (
        b"POST /v1/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        b"Authorization: Bearer " + service.secret.encode() + b"\r\n"
    )


@pytest.mark.timeout(60)
def test_a_body_that_does_not_come_or_drop_by_drop_is_not_waited_for(service: Service) -> None:
    with connect(service) as silent, connect(service) as dripping:
        silent.sendall(post(service) + b"Content-Length: 100\r\n\r\n{")
        dripping.sendall(post(service) + b"Transfer-Encoding: chunked\r\n\r\n")
        began = time.monotonic()
        while not select.select([dripping], [], [], 0.2)[0]:
            dripping.sendall(b"1\r\n \r\n")
            assert time.monotonic() - began < 30
        answers = [answered(slow) for slow in (silent, dripping)]

    assert all(b"408" in answer.split(b"\r\n")[0] for answer in answers)
    assert all(b"too-slow-a-body" in answer for answer in answers)


@pytest.mark.parametrize(
    "job_id", ["9" * 19, "9" * 4000, "-1", "0x1", "1e3", "%00", "\u0661", "..", "1%20OR%201=1"]
)
def test_an_id_that_cannot_be_is_that_of_nothing(caller: httpx.Client, job_id: str) -> None:
    answer = caller.get(f"/v1/jobs/{job_id}/attempts")

    assert (answer.status_code, answer.json()["code"]) == (404, "not-found")


@pytest.mark.parametrize(
    "path", ["/v1/failed/groups", "/v1/operations", "/v1/audit?target=job:1", "/v1/tokens"]
)
@pytest.mark.parametrize("token", ["x", "-1", "9" * 30, "WyJhIiwgMV0=", "W1tbW1tbW1tb", "\x00"])
def test_a_page_token_is_refused_by_every_list(caller: httpx.Client, path: str, token: str) -> None:
    answer = caller.get(path, params={**dict(httpx.URL(path).params), "page_token": token})

    assert answer.status_code in (404, 422), answer.text
    assert answer.headers["content-type"] == "application/problem+json"


def chunks(size: int) -> Iterator[bytes]:
    """A body that does not say how long it is."""
    for _ in range(size // 65_536):
        yield b"x" * 65_536


def too_large(caller: httpx.Client) -> httpx.Response | None:
    """The answer to 10 MB without a length; None if it was cut off while it was being sent."""
    try:
        return caller.post("/v1/jobs", content=chunks(10_000_000), headers=JSON)
    except (httpx.WriteError, httpx.ReadError):
        return None


def test_ten_megabytes_are_refused_with_and_without_a_length(
    service: Service, caller: httpx.Client
) -> None:
    with connect(service) as reported:
        reported.sendall(post(service) + b"Content-Length: 10000000\r\n\r\n")
        answer = answered(reported)
    assert answer.startswith(b"HTTP/1.1 413")
    assert b"too-large" in answer
    untold = too_large(caller)
    assert untold is None or (untold.status_code, untold.json()["code"]) == (413, "too-large")


@pytest.mark.parametrize(("count", "length"), [(101, 1), (20, 1000)])
def test_more_headers_than_anybody_needs_are_refused(
    caller: httpx.Client, count: int, length: int
) -> None:
    headers = {f"X-{n}": "x" * length for n in range(count)}
    answer = caller.get("/v1/queues", headers=headers)

    assert (answer.status_code, answer.json()["code"]) == (431, "too-many-headers")


def test_headers_without_end_are_not_read(service: Service) -> None:
    with connect(service) as endless, contextlib.suppress(BrokenPipeError, ConnectionResetError):
        endless.sendall(b"GET /live HTTP/1.1\r\nHost: 127.0.0.1\r\n")
        for _ in range(100):
            endless.sendall(b"X: " + b"x" * 10_000 + b"\r\n")
        assert endless.recv(100).startswith((b"HTTP/1.1 400", b"HTTP/1.1 431"))


def resident(service: Service) -> int:
    """The memory of the server's process, in bytes."""
    status = Path(f"/proc/{service.process.pid}/status").read_text()
    return int(re.findall(r"VmRSS:\s+(\d+) kB", status)[0]) * 1024


def assault(caller: httpx.Client, service: Service) -> None:
    """Forty requests that are refused."""
    for n in range(8):
        for body in (b"[" * 200_000, b'{"task":"t","args":{"a":"' + b"x" * 1_000_000, b"\x00" * 99):
            assert caller.post("/v1/jobs", content=body, headers=JSON).is_client_error
        assert caller.get(f"/v1/jobs/{n}{'9' * 4000}").is_client_error
        assert caller.get("/v1/queues", headers={f"X-{i}": "x" for i in range(200)}).is_client_error
    too_large(caller)
    with connect(service) as half:
        half.sendall(post(service) + b"Content-Length: 1000000\r\n\r\n" + b"x" * 500_000)


@pytest.mark.timeout(110)
def test_memory_stays_flat(service: Service, caller: httpx.Client) -> None:
    """After a first round, in which what is needed is taken, hundreds add nothing that stays:
    what the allocator has not given back yet comes and goes."""
    assault(caller, service)
    before = resident(service)
    grown = []
    for _ in range(5):
        assault(caller, service)
        grown.append((resident(service) - before) / 2**20)
    assert min(grown[-4:]) < 32, grown
    assert max(grown) < 64, grown
    assert caller.get("/live").is_success


def test_depth_is_that_of_brackets_outside_of_strings() -> None:
    flat = b'["' + b"[" * 200 + b'\\"' + b"[" * 200 + b'"]'
    assert depth(flat) == 1
    assert depth(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH) == 0
    assert depth(b"[" * (MAX_DEPTH + 1)) == MAX_DEPTH + 1
    assert depth(b"[]" * 100_000) == 1
    assert depth(b'["\\\\",' + b"[" * 99) == 100
    assert depth(b"[" * 40 + b"[]," * 60_000 + b"[" * 30) > MAX_DEPTH
    assert depth(b'[{"a":' * 40 + b"1" + b"}]" * 40) > MAX_DEPTH
    assert depth(b"[" * 60 + b"[]," * 100 + b"]" * 60) == 61


@pytest.mark.timing
@pytest.mark.parametrize(
    "part",
    [b"[]", b"[" * 64 + b"]" * 64, b"[", b"]", b'"', b'\\"[', b'{"":[]},', b'"' + b"[" * 99 + b'"'],
)
def test_the_depth_of_no_body_takes_long(part: bytes) -> None:
    """It is linear, and done in pieces, outside of the event loop."""
    body = part * (MAX_BODY // len(part))
    assert median(lambda: seconds(lambda: depth(body), time.process_time)) < 1
