"""What a server is sent by those who mean it no good."""

from __future__ import annotations

import socket
import time
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from tenure.server.limits import MAX_BODY, MAX_DEPTH, depth

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx

    from tests.edges.server.conftest import Service

JSON = {"Content-Type": "application/json"}


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
        (b"\xff\xfe", 422, "invalid"),
        (b"", 422, "invalid"),
        (b"x" * (MAX_BODY + 1), 413, "too-large"),
        (b'{"task":"t","args":{"a":"' + b"x" * 300_000 + b'"}}', 422, "invalid"),
    ],
    ids=[
        *("deep", "deeper", "NUL", "surrogate", "infinite", "huge number", "unknown field"),
        *("half", "no text", "nothing", "too large", "payload too large"),
    ],
)
def test_it_is_refused_with_a_problem(
    caller: httpx.Client, body: bytes, status: int, code: str
) -> None:
    answer = caller.post("/v1/jobs", content=body, headers=JSON)

    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
    assert answer.headers["content-type"] == "application/problem+json"


def test_a_value_that_was_sent_is_not_sent_back(caller: httpx.Client) -> None:
    asked = {"task": "t", "priority": "hunter2!", "hunter3": 1, "args": "hunter4"}

    answer = caller.post("/v1/jobs", json=asked)

    assert answer.status_code == 422
    assert "hunter2" not in answer.text
    assert "hunter4" not in answer.text


def test_a_page_token_that_was_made_up_is_refused(caller: httpx.Client) -> None:
    for token in ("x", "1-99999999", "-1", "9" * 30, "'; DROP TABLE job; --"):
        answer = caller.get("/v1/jobs", params={"state": "queued", "page_token": token})
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid"), token


@pytest.mark.timeout(60)
def test_a_body_that_does_not_come_is_not_waited_for(service: Service) -> None:
    place = urlsplit(service.url)
    with socket.create_connection((place.hostname or "", place.port or 0), timeout=40) as slow:
        slow.sendall(
            b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            b"Content-Length: 100\r\n\r\n{"
        )
        began = time.monotonic()
        answer = slow.recv(4096)

    assert b"408" in answer.split(b"\r\n")[0]
    assert time.monotonic() - began < 20


def test_depth_is_that_of_brackets_outside_of_strings() -> None:
    flat = b'["' + b"[" * 200 + b'\\"' + b"[" * 200 + b'"]'
    assert depth(flat) == 1
    assert depth(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH) == 0
    assert depth(b"[" * (MAX_DEPTH + 1)) == MAX_DEPTH + 1
    assert depth(b"[]" * 1000) == 1
