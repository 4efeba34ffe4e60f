"""A worker's HTTP requests to a server that misbehaves. Each ends as documented, in time."""

from __future__ import annotations

import asyncio
import base64
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from support.store import install
from tenure import Tenure
from tenure.config import DEFAULTS
from tests.kinds.hostile_server import BEHAVIORS
from tests.worker.acts import periods, row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from support.databases import Databases
    from tenure._model.attempt import AttemptRow
    from tenure._model.job import JobRow
    from tests.kinds.conftest import HostileServer

DONE, FINAL, AGAIN = "completed", "gave up", "retried"
TOTAL = 3.0
# A machine with two busy cores is slow to end what has ended.
SLACK = 4.0
CANARY = "hush-canary-4711-do-not-tell"
FULL_BODY = 64 * 1024


@dataclass(frozen=True)
class Case:
    """A request, how it ends, what its error says, and what its result must be."""

    name: str
    ends: str
    error: str = ""
    result: Mapping[str, Any] | Callable[[dict[str, Any]], bool] = field(default_factory=dict)
    path: str | None = None
    port: str = "plain"
    host: str = "localhost"
    url: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


def _status(code: int, ends: str) -> Case:
    result = {"status": code} if ends == DONE else {}
    error = "" if ends == DONE else f"answered {code}"
    return Case(f"status-{code}", ends, error, result, path=f"status/{code}")


def _fits(result: dict[str, Any]) -> bool:
    size = len(json.dumps(result, ensure_ascii=False, separators=(",", ":")).encode())
    return bool(result["truncated"]) and size <= FULL_BODY


DRAWN_OUT = "did not send its whole response within 3 s"
CUT = "closed the connection before it answered"
INVALID = "sent an invalid response"
HELLO = {"status": 200, "body": "hello", "encoding": "text", "truncated": False}
CASES = [
    *(_status(code, DONE) for code in (200, 201, 202, 203, 204, 206, 207, 299)),
    *(_status(code, FINAL) for code in (300, 301, 302, 303, 304, 305, 307, 308, 399)),
    *(_status(code, FINAL) for code in (400, 401, 402, 403, 404, 405, 406, 407, 409, 410, 411)),
    *(_status(code, FINAL) for code in (412, 413, 415, 418, 421, 422, 426, 428, 431, 451, 499)),
    *(_status(code, AGAIN) for code in (408, 425, 429)),
    *(_status(code, AGAIN) for code in (500, 501, 502, 503, 504, 505, 507, 511, 520, 599, 999)),
    # Redirects.
    Case("redirect-loop", FINAL, "redirects are not followed"),
    Case("redirect-metadata", FINAL, "redirects are not followed"),
    # Time.
    Case("silent", AGAIN, "sent nothing for too long"),
    Case("silent-body", AGAIN, "sent nothing for too long"),
    Case("slow-headers", AGAIN, DRAWN_OUT),
    Case("slow-body", AGAIN, DRAWN_OUT),
    Case("endless-continue", AGAIN, DRAWN_OUT),
    Case("half-close", AGAIN, "without sending a response"),
    Case("own-timeout", AGAIN, "within 0.5 s", path="slow-body", options={"timeout": 0.5}),
    # The connection.
    Case("reset", AGAIN, CUT),
    Case("reset-in-headers", AGAIN, CUT),
    Case("reset-in-body", AGAIN, CUT),
    Case("close", AGAIN, "without sending a response"),
    Case("close-kept", DONE, result={"status": 200, "body": "bye"}),
    Case("closed-port", AGAIN, "connection refused", port="closed"),
    Case("full-backlog", AGAIN, "could not connect", port="full"),
    # The size.
    Case("endless", DONE, result=_fits),
    Case("endless-chunked", DONE, result=_fits),
    Case("ten-gigabytes", DONE, result=_fits),
    Case("gzip-bomb", DONE, result=_fits),
    Case("gzip-nothing", DONE, result={"body": "x", "truncated": True}),
    Case("gzip-twice", DONE, result={"encoding": "base64"}),
    Case("huge-header", AGAIN, INVALID),
    Case("many-headers", AGAIN, INVALID),
    # Encodings.
    Case("gzip", DONE, result=HELLO),
    Case("deflate", DONE, result=HELLO),
    Case("brotli", DONE, result={"encoding": "base64"}),
    Case("gzip-broken", AGAIN, "not valid gzip"),
    Case("gzip-cut", AGAIN, "without its end"),
    Case(
        "binary",
        DONE,
        result={"encoding": "base64", "body": base64.b64encode(bytes(range(256))).decode()},
    ),
    Case("nul", DONE, result={"encoding": "base64", "body": "YQBi"}),
    Case("controls", DONE, result={"encoding": "base64", "truncated": True}),
    Case("latin-1", DONE, result={"encoding": "text", "body": "café"}),
    Case("utf-16", DONE, result={"encoding": "base64"}),
    Case("cut-character", DONE, result=lambda r: _fits(r) and set(r["body"]) == {"é"}),
    Case("quotes", DONE, result=lambda r: _fits(r) and set(r["body"]) == {'"'}),
    # The protocol.
    *(Case(name, AGAIN, INVALID) for name in ("http-0.9", "http-2", "garbage", "upgrade")),
    *(Case(name, AGAIN, INVALID) for name in ("status-99", "status-word", "short-body")),
    *(Case(name, AGAIN, INVALID) for name in ("two-lengths", "negative-length", "bad-chunk")),
    *(Case(name, AGAIN, INVALID) for name in ("huge-chunk-size", "chunked-cut", "nul-header")),
    Case("no-colon", AGAIN, INVALID),
    Case("http-1.0", DONE, result={"body": "old"}),
    Case("no-reason", DONE, result={"body": "ok"}),
    Case("early-hints", DONE, result={"body": "ok"}),
    Case("http-7", DONE, result={"status": 200}),
    Case("length-and-chunked", DONE, result={"body": "ok"}),
    Case("folded-header", DONE, result={"headers": {"etag": "a b", "content-length": "0"}}),
    Case("split", DONE, result={"body": "ok"}),
    # What is kept, and what isn't.
    Case("cookie", DONE, result={"headers": {"etag": "seven", "content-length": "2"}}),
    Case(
        "echo",
        DONE,
        result=lambda r: CANARY not in json.dumps(r) and "Bearer [secret]" in r["body"],
        options={"headers": {"Authorization": {"secret": "canary", "prefix": "Bearer "}}},
    ),
    Case(
        "secret-elsewhere",
        FINAL,
        "must not be sent to http://127.0.0.1",
        path="echo",
        host="127.0.0.1",
        options={"headers": {"Authorization": {"secret": "canary"}}},
    ),
    # Retry-After.
    *(
        Case(f"wait-{name}", AGAIN)
        for name in ("seconds", "date", "past", "long", "nonsense", "zero")
    ),
    # TLS.
    Case("tls", DONE, result={"status": 200}, port="good"),
    Case("tls-address", DONE, result={"status": 200}, port="good", host="127.0.0.1"),
    Case("tls-expired", AGAIN, "certificate has expired", port="expired"),
    Case("tls-other-name", AGAIN, "Hostname mismatch", port="other-name"),
    Case("tls-self-signed", AGAIN, "self-signed certificate", port="self-signed"),
    Case("tls-untrusted", AGAIN, "unable to get local issuer", port="untrusted"),
    Case("tls-old", AGAIN, "failed the TLS handshake", port="old"),
    Case("tls-mute", AGAIN, "did not complete its TLS handshake", port="mute"),
    Case("tls-client", DONE, port="client", options={"certificate": "visitor"}),
    Case("tls-no-client", AGAIN, "", port="client"),
    Case(
        "tls-unknown-client",
        AGAIN,
        "no certificate",
        port="good",
        options={"certificate": "nobody"},
    ),
    # Addresses.
    Case("port-6379", FINAL, "port must be 80 or 443", url="http://example.com:6379/"),
    Case("metadata", FINAL, "a metadata address", url="http://169.254.169.254/latest/"),
    Case("metadata-name", FINAL, "metadata service", url="http://metadata.google.internal/"),
    Case("private", FINAL, "a private address", url="http://10.1.2.3/"),
    Case("shared", FINAL, "a shared (CGNAT) address", url="http://100.64.1.1/"),
    Case("other-loopback", FINAL, "a loopback address", url="http://127.0.0.2/"),
    Case("ipv6-loopback", FINAL, "a loopback address", url="http://[::1]/"),
    Case("mapped", FINAL, "a translated", url="http://[::ffff:127.0.0.1]/"),
    Case("nat64", FINAL, "a translated", url="http://[64:ff9b::7f00:1]/"),
    Case("6to4", FINAL, "a translated", url="http://[2002:7f00:1::]/"),
    Case("teredo", FINAL, "a translated", url="http://[2001:0:1::80ff:fffe]/"),
    Case("unspecified", FINAL, "an unspecified address", url="http://0.0.0.0/"),
    Case("unknown-name", AGAIN, "could not be looked up", url="http://no-such-name.invalid/"),
]


@dataclass(frozen=True)
class Ending:
    job: JobRow
    attempt: AttemptRow
    next_at: datetime | None

    @property
    def how(self) -> str:
        if self.job.state == "completed":
            return DONE
        return FINAL if self.job.state == "failed" else AGAIN

    @property
    def seconds(self) -> float:
        return (self.attempt.ended_at - self.attempt.started_at).total_seconds()


@pytest.fixture(scope="module")
def endings(databases: Databases, hostile: HostileServer) -> Iterator[Mapping[str, Ending]]:
    """Every case, run once by one worker at the same time."""
    url = databases.create(databases.template("tenure", install))
    table = {
        "allow": [f"localhost:{port}" for port in hostile.ports.values()]
        + [f"127.0.0.1:{hostile.ports[name]}" for name in ("plain", "good")],
        "total_timeout": TOTAL,
        "read_timeout": 1,
        "connect_timeout": 1,
        "connections_per_host": 200,
        "ca_file": str(hostile.directory / "authority.pem"),
        "certificates": {"visitor": {"cert": str(hostile.directory / "visitor.pem")}},
        "secrets": {"canary": [f"http://localhost:{hostile.ports['plain']}"]},
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TENURE_KINDS_HTTP", json.dumps(table))
        patch.setenv("TENURE_SECRET_CANARY", CANARY)
        # No proxy of the environment is used: this one would refuse everything.
        patch.setenv("http_proxy", "http://127.0.0.1:1")
        patch.setenv("https_proxy", "http://127.0.0.1:1")
        yield asyncio.run(_run(url, hostile))
    databases.drop(url)


async def _run(url: str, hostile: HostileServer) -> Mapping[str, Ending]:
    app = Tenure(url, defaults=DEFAULTS.scaled(0.5))
    calls = []
    for case in CASES:
        where = case.path if case.path is not None else case.name
        address = case.url or hostile.url(where, case.port, case.host)
        call = app.http.post(address, json={"case": case.name}, **case.options)
        calls.append(call.using(max_attempts=1000).bind())
    handles = await app.aenqueue_many(calls)
    endings = {}
    async with app.run(kinds=["http"], concurrency=24, schedules=False):
        for case, handle in zip(CASES, handles, strict=True):
            first, *later = await periods(app, handle, 1, within=60)
            # A wait of 1 s may be over by now.
            next_at = later[0].due_at if later else (await row(handle)).run_at
            endings[case.name] = Ending(await row(handle), first, next_at)
    await app.aclose()
    return endings


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_each_behavior_ends_as_documented_in_bounded_time(
    endings: Mapping[str, Ending], case: Case
) -> None:
    ending = endings[case.name]
    error = f"{ending.attempt.error_type}: {ending.attempt.error_message}"
    assert ending.how == case.ends, error
    assert ending.seconds < TOTAL + SLACK
    if case.ends == DONE:
        result = ending.job.result
        assert isinstance(result, dict)
        if callable(case.result):
            assert case.result(result), result
        else:
            assert {name: result[name] for name in case.result} == case.result
    else:
        assert case.error in error


def test_battery_has_every_behavior_of_the_server() -> None:
    assert len(CASES) >= 100
    assert set(BEHAVIORS) - {"flaky"} <= {case.name for case in CASES}


def test_a_redirect_is_not_followed(endings: Mapping[str, Ending], hostile: HostileServer) -> None:
    assert endings["redirect-loop"].how == FINAL
    assert len(hostile.requests("redirect-loop")) == 1


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("wait-seconds", 120, 133),
        ("wait-date", 290, 331),
        ("wait-past", 1, 1),
        ("wait-zero", 1, 1),
        ("wait-long", 3600, 3600),
        # The backoff: 30 s and its jitter.
        ("wait-nonsense", 30, 36),
    ],
)
def test_retry_after_is_honored_up_to_the_cap_of_the_backoff(
    endings: Mapping[str, Ending], name: str, least: float, most: float
) -> None:
    ending = endings[name]
    assert ending.next_at is not None
    waits = (ending.next_at - ending.attempt.ended_at).total_seconds()
    assert least - 0.5 <= waits <= most + 0.5


def test_no_error_and_no_result_contains_a_secret(endings: Mapping[str, Ending]) -> None:
    assert not [name for name, ending in endings.items() if CANARY in repr(ending)]


def test_requests_name_the_job_and_its_attempt(
    endings: Mapping[str, Ending], hostile: HostileServer
) -> None:
    [request] = hostile.requests("echo")
    headers = request["headers"]
    assert headers["authorization"] == f"Bearer {CANARY}"
    assert headers["host"] == f"localhost:{hostile.ports['plain']}"
    assert headers["webhook-id"].startswith(f"tenure-{endings['echo'].job.id}-")
    assert abs(int(headers["webhook-timestamp"]) - datetime.now(UTC).timestamp()) < 300
    assert headers["tenure-attempt"] == "1"
    assert int(headers["tenure-fence"]) > 0
    assert headers["accept-encoding"] == "identity"
    assert headers["content-type"] == "application/json"
    assert "webhook-signature" not in headers
    assert json.loads(request["body"]) == {"case": "echo"}
