"""A worker over HTTP that is stopped while handlers run: it renews until each job is settled."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from support.processes import wait_for
from tenure.client import Client, work

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.server.conftest import Service

LEASE = 7
JOBS = 4
PROGRAM = """
import os, signal, sys, threading, time
from pathlib import Path
from tenure.client import Client, work

directory = Path(sys.argv[1])

def write(word, job):
    with (directory / "ledger").open("a") as ledger:
        ledger.write(f"{word} {job.id} {job.fence} {os.getpid()}\\n")

def last(job):
    write("start", job)
    while not (directory / "end").exists():
        time.sleep(0.05)
    write("end", job)
    return "done"

stop = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: stop.set())
with Client(os.environ["TENURE_URL"], os.environ["TENURE_TOKEN"]) as client:
    work(client, {"last": last}, queues=["lasting"], slots=4, stop=stop)
"""


@pytest.fixture
def client(service: Service) -> Iterator[Client]:
    with Client(service.url, service.secret) as client:
        yield client


@contextmanager
def worker(service: Service, directory: Path) -> Iterator[subprocess.Popen[bytes]]:
    environment = os.environ | {"TENURE_URL": service.url, "TENURE_TOKEN": service.secret}
    process = subprocess.Popen([sys.executable, "-c", PROGRAM, str(directory)], env=environment)
    try:
        yield process
    finally:
        process.kill()
        process.wait(10)


def ledger(directory: Path, word: str) -> list[str]:
    """The jobs of the lines that begin with this word."""
    file = directory / "ledger"
    lines = file.read_text().splitlines() if file.exists() else []
    return [line.split()[1] for line in lines if line.startswith(word)]


def expires_at(job: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(job["lease_expires_at"])


def test_a_lease_is_renewed_while_a_stopped_worker_waits_for_its_handler(
    service: Service, client: Client
) -> None:
    """Shows R4. In this process, where a deliberate bug can be applied."""
    stop, begun, finish = threading.Event(), threading.Event(), threading.Event()

    def lasts(_: Any) -> str:
        begun.set()
        finish.wait(60)
        return "done"

    handlers = {"lasts": lasts}
    queues = ["waited-for"]
    job_id = client.enqueue("lasts", queue=queues[0], lease=LEASE)
    thread = threading.Thread(
        target=work, args=(client, handlers), kwargs={"queues": queues, "stop": stop}
    )
    thread.start()
    try:
        assert begun.wait(30)
        stop.set()
        # A renewal that was on its way may still arrive; later ones are due every third of a lease.
        time.sleep(1)
        at_stop = expires_at(dict(client.job(job_id)))
        later = at_stop + timedelta(seconds=LEASE / 2)

        def renewed_twice() -> bool:
            job = dict(client.job(job_id))
            return job["state"] == "running" and expires_at(job) > later

        assert wait_for(renewed_twice, 1.3 * LEASE)
    finally:
        stop.set()
        finish.set()
        thread.join(30)
    job = client.job(job_id)
    assert (job["state"], job["result"], job["losses"]) == ("completed", "done", 0)


def test_leases_are_renewed_after_stop_until_each_job_is_settled(
    service: Service, client: Client, tmp_path: Path
) -> None:
    """Shows R4: with a second worker there, no job runs twice side by side."""
    ids = [client.enqueue("last", queue="lasting", lease=LEASE) for _ in range(JOBS)]
    with ExitStack() as stack:
        stopped = stack.enter_context(worker(service, tmp_path))
        assert wait_for(lambda: len(ledger(tmp_path, "start")) == JOBS, 30)
        stack.enter_context(worker(service, tmp_path))
        stopped.send_signal(signal.SIGTERM)
        first = max(expires_at(dict(client.job(job_id))) for job_id in ids)
        # Longer than a lease and the sweep for expired ones after it.
        later = first + timedelta(seconds=1.3 * LEASE)

        def renewed_on() -> bool:
            jobs = [dict(client.job(job_id)) for job_id in ids]
            return all(job["state"] == "running" and expires_at(job) > later for job in jobs)

        assert wait_for(renewed_on, 5 * LEASE), (tmp_path / "ledger").read_text()
        (tmp_path / "end").touch()
        assert stopped.wait(30) == 0

    assert sorted(ledger(tmp_path, "start")) == sorted(ids)
    assert sorted(ledger(tmp_path, "end")) == sorted(ids)
    for job_id in ids:
        job = client.job(job_id)
        assert (job["state"], job["result"], job["losses"]) == ("completed", "done", 0)
        [attempt] = client.call("GET", f"/v1/jobs/{job_id}/attempts")["attempts"]
        assert (attempt["outcome"], attempt["late"]) == ("completed", False)
