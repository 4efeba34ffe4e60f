"""HTTP work at full depth: a real worker process, and real HTTP and HTTPS servers."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import contextmanager
from shutil import which
from typing import TYPE_CHECKING, Any

import pytest
from standardwebhooks import Webhook

from support.binaries import ROOT
from support.processes import die_with_parent, wait_for
from support.workers import Worker
from tenure import Tenure
from tests.app.sealed_jobs import AesGcm
from tests.kinds.test_http_signature import LIBRARY, NEW, OLD, in_node
from tests.worker.acts import attempts, end

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.store import Database
    from tenure.kinds.call import WorkCall
    from tests.kinds.conftest import Configure, HostileServer

CANARY = "hush-canary-0815-do-not-tell"


@pytest.fixture
def secret_file(tmp_path: Path) -> Path:
    file = tmp_path / "orders"
    file.write_text(OLD)
    return file


@pytest.fixture
def worker(
    db: Database, hostile: HostileServer, tmp_path: Path, secret_file: Path
) -> Iterator[Worker]:
    """A `tenure worker --kinds http` whose configuration allows the servers of this suite."""
    table = {
        "allow": [f"localhost:{port}" for port in hostile.ports.values()],
        "ca_file": str(hostile.directory / "authority.pem"),
        "certificates": {"visitor": {"cert": str(hostile.directory / "visitor.pem")}},
        "secrets": {"canary": [f"localhost:{hostile.ports['good']}"]},
    }
    environment = {
        "TENURE_KINDS_HTTP": json.dumps(table),
        "TENURE_SECRET_ORDERS_FILE": str(secret_file),
        "TENURE_SECRET_CANARY": CANARY,
    }
    options = {"kinds": "http", "log-level": "debug"}
    target = "tests.kinds.http_app:app"
    with Worker(target, db.url, tmp_path, environment, None, **options) as running:
        yield running


async def _deliver(app: Tenure, call: WorkCall) -> Any:
    handle = await call.aenqueue()
    job = await end(handle, within=60)
    assert job.state == "completed", [one.error_message for one in await attempts(app, handle)]
    return job.result


async def test_a_worker_sends_requests_retries_them_and_stores_the_response(
    db: Database, hostile: HostileServer, worker: Worker
) -> None:
    """Shows R29."""
    app = Tenure(db.url)
    # HTTPS with an authority of its own, a client certificate, and a named secret in a header.
    secure = app.http.post(
        hostile.url("echo", "good"),
        json={"order": 7},
        headers={"Authorization": {"secret": "canary", "prefix": "Bearer "}, "X-Source": "shop"},
        secret="orders",  # noqa: S106 - a name
    )
    result = await _deliver(app, secure)
    assert (result["status"], result["encoding"], result["truncated"]) == (200, "text", False)
    assert json.loads(result["body"])["authorization"] == "Bearer [secret]"
    [request] = hostile.requests("echo")
    assert request["headers"]["authorization"] == f"Bearer {CANARY}"
    assert request["headers"]["x-source"] == "shop"
    assert Webhook(OLD).verify(request["body"], request["headers"]) == {"order": 7}
    with_client = app.http.get(hostile.url("client-page", "client"), certificate="visitor")
    assert (await _deliver(app, with_client))["body"] == "ok"

    # A busy server: three attempts, one id, a fence that increases.
    handle = await app.http.put(hostile.url("flaky"), body="late").aenqueue()
    job = await end(handle, within=60)
    assert (job.state, job.attempt) == ("completed", 3)
    assert job.result["body"] == '{"accepted": true}'
    sent = [one["headers"] for one in hostile.requests("flaky")]
    assert len({headers["webhook-id"] for headers in sent}) == 1
    assert [headers["tenure-attempt"] for headers in sent] == ["1", "2", "3"]
    fences = [int(headers["tenure-fence"]) for headers in sent]
    assert fences == sorted(set(fences))
    errors = [one.error_message for one in await attempts(app, handle)]
    assert errors == ["the server answered 503 Service Unavailable"] * 2 + [None]

    # What cannot succeed becomes a dead letter at once, and the worker continues.
    for url in ("http://169.254.169.254/", hostile.url("status/404")):
        refused = await app.http.get(url).aenqueue()
        job = await end(refused, within=60)
        assert (job.state, job.attempt, job.done_reason) == ("failed", 1, "gave_up")
    assert (await _deliver(app, app.http.delete(hostile.url("gone"))))["status"] == 200

    assert worker.alive
    assert CANARY not in worker.log()
    rows = await db.fetch("SELECT a::text FROM tenure.attempt a")
    rows += await db.fetch("SELECT a::text FROM tenure.job_archive a")
    assert CANARY not in str(rows)
    await app.aclose()


async def test_a_secret_rotates_without_a_failed_delivery(
    db: Database, hostile: HostileServer, worker: Worker, secret_file: Path
) -> None:
    app = Tenure(db.url)
    phases = {OLD: [OLD], f"{NEW} {OLD}": [NEW, OLD], NEW: [NEW]}
    for number, (secrets, receivers) in enumerate(phases.items()):
        # As deployments replace a file: at once.
        fresh = secret_file.with_suffix(".new")
        fresh.write_text(secrets)
        fresh.rename(secret_file)
        path = f"rotation-{number}"
        calls = [
            app.http.post(hostile.url(path), json={"n": n, "é": "☃"}, secret="orders").bind()  # noqa: S106
            for n in range(20)
        ]
        for handle in await app.aenqueue_many(calls):
            job = await end(handle, within=60)
            assert (job.state, job.attempt) == ("completed", 1)
        messages: list[dict[str, object]] = [
            {
                "body": request["body"].encode("latin-1").decode(),
                "headers": request["headers"],
            }
            for request in hostile.requests(path)
        ]
        assert len(messages) == 20
        for receiver in receivers:
            assert in_node(receiver, messages) == {"verified": 20, "of": 20}
            for message in messages:
                body, headers = message["body"], message["headers"]
                assert isinstance(body, str)
                assert isinstance(headers, dict)
                assert Webhook(receiver).verify(body, headers)["é"] == "☃"
    await app.aclose()


@pytest.mark.parametrize("path", ["quotes", "cut-character", "endless", "binary", "controls"])
async def test_a_large_response_fits_into_a_sealed_result(
    db: Database, hostile: HostileServer, configured: Configure, path: str
) -> None:
    configured(allow=[f"localhost:{hostile.ports['plain']}"])
    app = Tenure(db.url, codec=AesGcm(bytes(32)))
    async with app.run(kinds=["http"], schedules=False):
        handle = await app.http.get(hostile.url(path)).aenqueue()
        job = await end(handle, within=30)
    assert job.state == "completed", await attempts(app, handle)
    assert handle.result["truncated"] is (path != "binary")
    await app.aclose()


def _receiver(language: str) -> str:
    guide = (ROOT / "docs/how-to/http-work.md").read_text()
    name = {"python": "# receiver.py", "js": "// receiver.js"}[language]
    [code] = re.findall(rf"^```{language}\n({name}\n.*?)^```", guide, re.DOTALL | re.MULTILINE)
    return str(code)


@pytest.mark.parametrize("language", ["python", "js"])
async def test_the_receivers_of_the_guide_verify_what_a_worker_sends(
    db: Database,
    hostile: HostileServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    language: str,
) -> None:
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port = probe.getsockname()[1]
    file = tmp_path / f"receiver.{'py' if language == 'python' else 'js'}"
    file.write_text(_receiver(language))
    command = sys.executable if language == "python" else which("node") or "node"
    environment = {
        **os.environ,
        "WEBHOOK_SECRET": NEW,
        "PORT": str(port),
        "NODE_PATH": str(LIBRARY / "node_modules"),
    }
    monkeypatch.setenv("TENURE_SECRET_ORDERS", NEW)
    monkeypatch.setenv("TENURE_SECRET_OTHER", OLD)
    monkeypatch.setenv("TENURE_KINDS_HTTP", json.dumps({"allow": [f"localhost:{port}"]}))
    with _running([command, str(file)], environment, tmp_path / "out"):
        assert await asyncio.to_thread(wait_for, lambda: _listens(port), 20)
        app = Tenure(db.url)
        url = f"http://localhost:{port}/orders"
        async with app.run(kinds=["http"], schedules=False):
            result = await _deliver(app, app.http.post(url, json={"é": 7}, secret="orders"))  # noqa: S106
            assert result["status"] == 204
            wrong = await app.http.post(url, json={"é": 7}, secret="other").aenqueue()  # noqa: S106
            job = await end(wrong)
            assert (job.state, job.done_reason) == ("failed", "gave_up")
        await app.aclose()
    printed = (tmp_path / "out").read_text()
    assert "tenure-" in printed
    assert "é" in printed


@contextmanager
def _running(words: list[str], environment: dict[str, str], out: Path) -> Iterator[None]:
    with out.open("w") as written:
        process = subprocess.Popen(
            words,
            env=environment,
            stdout=written,
            stderr=written,
            preexec_fn=die_with_parent(signal.SIGKILL),  # noqa: PLW1509 - it takes no lock
        )
    try:
        yield
    finally:
        process.kill()
        process.wait()


def _listens(port: int) -> bool:
    try:
        urllib.request.urlopen(f"http://localhost:{port}/", timeout=1)
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
    return True
