"""A real worker's `/metrics` and `/healthz`: what it knows without asking the database."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from support.processes import wait_for
from support.promtool import promtool
from support.proxy import Proxy
from tenure._metrics import CONTENT_TYPE, WORKER
from tenure._model.job import NewJob
from tenure._runtime.counters import SharedCounters
from tenure.errors import ConfigError
from tenure.worker import observability as module
from tenure.worker.observability import HealthResponse, open_socket, serve_health

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from support.store import Database

PROGRAM = """
import os, time
from tenure import Tenure
from tenure.config import DEFAULTS

app = Tenure(os.environ["TENURE_DATABASE_URL"], defaults=DEFAULTS.scaled(0.1))

@app.task
def hello(seconds: float = 0) -> None:
    time.sleep(seconds)

@app.task(max_attempts=1)
def fails() -> None:
    raise ValueError("no")

@app.task(process=True, max_losses=1)
def leaves() -> None:
    os._exit(3)

@app.schedule(every=1, name="seconds")
@app.task
def tick() -> None: ...
"""
_AT = re.compile(r"serving metrics at (http://\S+)/metrics")


@contextmanager
def running(directory: Path, url: str, command: str) -> Iterator[tuple[str, int]]:
    """A worker or a scheduler; where it answers, and its process."""
    (directory / "jobs.py").write_text(PROGRAM)
    words = directory / "words"
    with (
        words.open("wb") as file,
        subprocess.Popen(
            [sys.executable, "-m", "tenure", command, "jobs:app", "--metrics-port", "0"],
            cwd=directory,
            env=os.environ
            | {"TENURE_DATABASE_URL": url, "TENURE_RUN_DIR": str(directory), "TENURE_GRACE": "2"},
            stderr=file,
        ) as process,
    ):
        try:
            assert wait_for(lambda: _AT.search(words.read_text()) is not None, 60)
            found = _AT.search(words.read_text())
            assert found is not None
            yield found[1], process.pid
        finally:
            process.terminate()
            process.wait(60)


def get(url: str) -> httpx.Response:
    return httpx.get(url, timeout=10)


def scrape(at: str) -> dict[str, float]:
    answer = get(f"{at}/metrics")
    assert answer.headers["content-type"] == CONTENT_TYPE
    lines = (line for line in answer.text.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def children(parent: int) -> list[int]:
    return [int(pid) for pid in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]


async def test_a_worker_says_what_it_runs_and_lives_on_without_its_database(
    db: Database, tmp_path: Path
) -> None:
    """Shows R30, R37."""
    started = 'tenure_worker_jobs_started_total{task="jobs.hello"}'
    failed = 'tenure_worker_jobs_ended_total{task="jobs.fails",outcome="failed"}'
    left = 'tenure_worker_handler_processes_ended_total{reason="exit"}'
    others = [NewJob("jobs.fails"), NewJob("jobs.leaves", max_losses=1)]
    with Proxy(db.url) as proxy, running(tmp_path, proxy.url, "worker") as (at, pid):
        await db.run(db.store.jobs.enqueue([NewJob("jobs.hello")] * 3 + others))
        assert wait_for(lambda: scrape(at).get(started) == 3, 60)
        assert wait_for(lambda: scrape(at).get(failed) == 1, 60)
        assert wait_for(lambda: scrape(at).get(left) == 1, 60)
        found = scrape(at)
        assert found["tenure_worker_slots"] == 10
        assert found["tenure_worker_children"] == found["tenure_worker_children_wanted"] == 1
        assert found["tenure_worker_jobs_claimed_total"] >= 4
        assert found['tenure_worker_database_errors_total{service="claimer"}'] == 0
        assert wait_for(lambda: scrape(at)["tenure_worker_ticks_total"] >= 1, 60)
        page = get(f"{at}/metrics").text
        names = set(re.findall(r"^# TYPE (\w+)", page, re.MULTILINE))
        assert names == {metric.name for metric in WORKER}
        assert promtool("check", "metrics", given=page) == ""

        # What a child has counted stays when it is gone.
        [child] = children(pid)
        os.kill(child, signal.SIGKILL)
        crashed = 'tenure_worker_children_ended_total{reason="crashed"}'
        assert wait_for(lambda: scrape(at)[crashed] == 1, 60)
        assert (scrape(at)[started], scrape(at)[left]) == (3, 1)
        assert wait_for(lambda: scrape(at).get("tenure_worker_heartbeat_age_seconds", 9.0) < 1, 60)

        proxy.cut()
        assert wait_for(lambda: scrape(at)["tenure_worker_heartbeat_age_seconds"] > 1.5, 60)
        health = get(f"{at}/healthz")
        assert (health.status_code, health.json()["status"]) == (200, "live")
        proxy.restore()


async def test_a_scheduler_says_what_it_has_fired(db: Database, tmp_path: Path) -> None:
    with running(tmp_path, db.url, "scheduler") as (at, _):
        assert wait_for(lambda: scrape(at)["tenure_worker_ticks_total"] >= 1, 60)
        assert get(f"{at}/healthz").json() == {"status": "live"}


@pytest.fixture
async def listener() -> AsyncIterator[tuple[str, int]]:
    """A listener alone."""
    on = open_socket("127.0.0.1", 0)
    async with serve_health(
        on, metrics=lambda: "m 1\n", health=lambda: HealthResponse(200, "text/plain", "well\n")
    ):
        yield on.getsockname()


async def requested(listener: tuple[str, int], given: bytes) -> bytes:
    reader, writer = await asyncio.open_connection(*listener)
    writer.write(given)
    with suppress(ConnectionError):
        answer = await reader.read()
        writer.close()
        return answer
    return b""


@pytest.mark.parametrize(
    ("given", "status"),
    [
        (b"GET /healthz HTTP/1.1\r\n\r\n", b"200 OK"),
        (b"HEAD /metrics?x=1 HTTP/1.0\r\nhost: x\r\n\r\n", b"200 OK"),
        (b"GET /v1/jobs HTTP/1.1\r\n\r\n", b"404 Not Found"),
        (b"POST /metrics HTTP/1.1\r\n\r\n", b"405 Method Not Allowed"),
        (b"\xff\r\n\r\n", b"404 Not Found"),
        (b"GET /" + b"a" * 100_000, b""),
    ],
)
async def test_it_answers_two_paths_and_closes(
    listener: tuple[str, int], given: bytes, status: bytes
) -> None:
    answer = await requested(listener, given)
    assert answer.partition(b"\r\n")[0].removeprefix(b"HTTP/1.1 ") == status
    if given.startswith(b"HEAD"):
        assert answer.endswith(b"\r\n\r\n")


async def test_who_says_nothing_is_not_waited_for(
    listener: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_WITHIN", 0.1)
    assert await requested(listener, b"GET /metrics HTTP/1.1\r\n") == b""


def test_taken_port_is_refused_with_the_fix() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(ConfigError, match="--metrics-port"),
    ):
        open_socket("127.0.0.1", taken.getsockname()[1])


def test_a_sheet_is_whole_whenever_it_is_read() -> None:
    fd = SharedCounters.make()
    childs, parents = SharedCounters(fd), SharedCounters(fd)
    os.close(fd)
    assert parents.read() == {}
    for n in range(3):
        childs.write({"lost": n, "started": {"grün": n}})
        assert parents.read() == {"lost": n, "started": {"grün": n}}
    childs.write({"started": {"x" * 1_000_000: 1}})
    assert parents.read()["lost"] == 2
    for sheet in (childs, parents):
        sheet.close()
