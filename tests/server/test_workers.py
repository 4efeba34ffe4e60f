"""Workers in three languages, as processes of their own, at one queue. Shows R32."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from support.processes import wait_for
from tenure import GiveUp, Retry
from tenure.client import Client, Problem, work
from tenure.errors import InvalidValue, LeaseLost

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tenure.client import Work
    from tests.server.conftest import Service

EXAMPLES = Path(__file__).parents[2] / "examples/http_workers"
WORKERS = {
    "python": [sys.executable, "worker.py"],
    "node": ["node", "worker.mjs"],
    "bash": ["bash", "worker.sh"],
}


@pytest.fixture(autouse=True)
def _short_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that waits for work sees after each poll that it is to stop."""
    monkeypatch.setattr("tenure.client.worker._LONGEST_WAIT", 0.5)


@pytest.fixture
def client(service: Service) -> Iterator[Client]:
    with Client(service.url, service.secret) as client:
        yield client


def results(client: Client, ids: list[str]) -> list[Any]:
    return [client.job(job_id).get("result") for job_id in ids]


@pytest.mark.parametrize("language", WORKERS)
def test_a_worker_in_any_language_does_the_work(
    service: Service, client: Client, language: str, tmp_path: Path
) -> None:
    """Shows R32."""
    program, *rest = WORKERS[language]
    found = shutil.which(program)
    assert found, f"{program} is not installed"
    ids = [client.enqueue("double", {"number": n}, queue="numbers") for n in range(5)]
    words = tmp_path / "words"
    with (
        words.open("wb") as file,
        subprocess.Popen(
            [found, *rest],
            cwd=EXAMPLES,
            env=os.environ | {"TENURE_URL": service.url, "TENURE_TOKEN": service.secret},
            stdout=file,
            stderr=file,
            process_group=0,
        ) as process,
    ):
        try:
            assert wait_for(lambda: results(client, ids) == [0, 2, 4, 6, 8], 60), words.read_text()
            process.send_signal(signal.SIGTERM)
            process.wait(30)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    assert service.secret not in words.read_text()


@contextmanager
def working(client: Client, handlers: dict[str, Any], queue: str, **given: Any) -> Iterator[None]:
    stop = threading.Event()
    options = {"queues": [queue], "slots": 2, "stop": stop, **given}
    thread = threading.Thread(target=work, args=(client, handlers), kwargs=options)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(40)
        assert not thread.is_alive()


def test_what_a_handler_raises_is_an_attempt_that_failed(service: Service, client: Client) -> None:
    def fall(_job: Work) -> None:
        raise RuntimeError("no luck")

    job_id = client.enqueue("fall", queue="falling", max_attempts=1)
    with working(client, {"fall": fall}, "falling"):
        assert wait_for(lambda: client.job(job_id)["state"] == "failed", 30)

    [attempt] = client.call("GET", f"/v1/jobs/{job_id}/attempts")["attempts"]
    assert (attempt["error_type"], attempt["error_message"]) == ("RuntimeError", "no luck")
    assert "in fall" in attempt["error_trace"]


def test_a_lease_is_renewed_while_its_handler_runs(service: Service, client: Client) -> None:
    done = threading.Event()

    def last(_job: Work) -> str:
        done.wait(30)
        return "done"

    job_id = client.enqueue("last", queue="lasting", lease=7)
    with working(client, {"last": last}, "lasting"):
        assert wait_for(lambda: client.job(job_id)["state"] == "running", 20)
        first = client.job(job_id)["lease_expires_at"]
        assert wait_for(lambda: client.job(job_id)["lease_expires_at"] > first, 20)
        done.set()
        assert wait_for(lambda: client.job(job_id)["state"] == "completed", 20)

    assert client.job(job_id)["losses"] == 0


def test_a_worker_names_its_lease_and_a_handler_its_end(service: Service, client: Client) -> None:
    """Shows R8. Shows R21. Shows R23."""
    ends: list[float] = []

    def crawl(job: Work) -> object:
        ends.append(job.ends_at - time.monotonic())
        job.progress(items={"a": 1}, extend=timedelta(minutes=10))
        ends.append(job.ends_at - time.monotonic())
        job.progress(done=1)
        ends.append(job.ends_at - time.monotonic())
        return job.finished("no_more_results", 2, cursor="z", items={"a": 9, "b": 2})

    job_id = client.enqueue("crawl", queue="crawling", lease=20)
    with working(client, {"crawl": crawl}, "crawling", lease=timedelta(seconds=90)):
        assert wait_for(lambda: client.job(job_id)["state"] == "completed", 30)

    claimed, extended, reported = ends
    assert 80 < claimed <= 90
    assert 590 < reported <= extended <= 600
    job = client.job(job_id)
    assert (job["done_reason"], job["result"], job["cursor"]) == ("no_more_results", 2, "z")
    assert client.call("GET", f"/v1/jobs/{job_id}/items")["items"] == {"a": 1, "b": 2}


def test_a_worker_with_a_lease_out_of_range_does_not_start(client: Client) -> None:
    with pytest.raises(InvalidValue, match="lease must be longer"):
        work(client, {}, lease=3)


def test_a_handler_learns_that_its_lease_is_lost(service: Service, client: Client) -> None:
    """Shows R4."""
    seen: list[object] = []

    def lose(job: Work) -> None:
        client.call("POST", f"/v1/jobs/{job.id}:revoke")
        job.stop.wait(20)
        seen.append(job.stop.is_set())
        try:
            job.progress(done=1)
        except LeaseLost:
            seen.append("lost")

    client.enqueue("lose", queue="losing", lease=7)
    with working(client, {"lose": lose}, "losing"):
        assert wait_for(lambda: len(seen) == 2, 30)

    assert seen == [True, "lost"]


def ended(client: Client, job_id: str, outcome: str = "failed") -> list[dict[str, Any]]:
    """The job's attempts, once one has ended so."""

    def ask() -> list[dict[str, Any]]:
        attempts = client.call("GET", f"/v1/jobs/{job_id}/attempts")["attempts"]
        return [each for each in attempts if each["outcome"] == outcome]

    assert wait_for(lambda: bool(ask()), 30)
    return ask()


def test_a_handler_gives_up_or_says_when_to_try_again(service: Service, client: Client) -> None:
    """Shows R14."""

    def stop(_job: Work) -> None:
        raise GiveUp("no such card")

    def later(_job: Work) -> None:
        raise Retry("busy", after=3000)

    stopped = client.enqueue("stop", queue="saying")
    delayed = client.enqueue("later", queue="saying")
    with working(client, {"stop": stop, "later": later}, "saying"):
        ended(client, stopped)
        ended(client, delayed)

    job = client.job(stopped)
    assert (job["state"], job["done_reason"], job["attempt"]) == ("failed", "gave_up", 1)
    job = client.job(delayed)
    waits = datetime.fromisoformat(job["run_at"]) - datetime.fromisoformat(job["created_at"])
    assert (job["state"], waits > timedelta(seconds=2900)) == ("queued", True)


@pytest.mark.parametrize("responds", [True, False])
def test_an_attempt_that_takes_too_long_is_stopped_and_has_timed_out(
    service: Service, client: Client, *, responds: bool
) -> None:
    over = threading.Event()

    def last(job: Work) -> None:
        job.stop.wait(20)
        if not responds:
            over.wait(20)
        raise RuntimeError("stopped")

    job_id = client.enqueue("last", queue=f"late-{responds}", timeout=1, max_attempts=1)
    with working(client, {"last": last}, f"late-{responds}"):
        [attempt] = ended(client, job_id)
        over.set()

    assert (attempt["error_type"], attempt["error_message"]) == ("TimedOut", "stopped after 1 s")
    assert client.job(job_id)["state"] == "failed"


def test_a_job_without_a_handler_does_not_come_back_at_once(
    service: Service, client: Client
) -> None:
    began = time.monotonic()
    strange = client.enqueue("strange", queue="mixed")
    known = client.enqueue("known", queue="mixed")
    with working(client, {"known": lambda _job: "done"}, "mixed"):
        assert wait_for(lambda: client.job(known)["state"] == "completed", 30)
        released = ended(client, strange, "released")
        periods = 1 + (time.monotonic() - began) / 5
    assert len(released) <= periods
    assert client.job(strange)["attempt"] == 0


def test_work_tells_what_it_is(service: Service, client: Client) -> None:
    seen: list[Work] = []
    job_id = client.enqueue("tell", queue="telling", max_attempts=3, key="one", timeout=9)
    with working(client, {"tell": seen.append}, "telling"):
        assert wait_for(lambda: len(seen) == 1, 30)

    [job] = seen
    assert (job.id, job.task, job.queue, job.key) == (job_id, "tell", "telling", "one")
    assert (job.attempt, job.max_attempts, job.timeout) == (1, 3, 9)
    assert job.idempotency_key.startswith(f"tenure-{job_id}-")


def test_refusal_has_its_code(service: Service) -> None:
    began = time.monotonic()
    with Client(service.url, "tnr_nobody") as stranger, pytest.raises(Problem) as refused:
        stranger.enqueue("double")

    assert (refused.value.status, refused.value.code) == (401, "unauthenticated")
    assert time.monotonic() - began < 10


class Rude(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (SystemExit(3), "SystemExit", "3"),
        (KeyboardInterrupt(), "KeyboardInterrupt", ""),
        (Rude(), "Rude", "the message cannot be shown: RuntimeError"),
        (ValueError("half a pair: \ud800"), "ValueError", "half a pair: \\ud800"),
    ],
)
def test_whatever_a_handler_raises_is_a_failed_attempt_with_its_error(
    service: Service,
    client: Client,
    caplog: pytest.LogCaptureFixture,
    error: BaseException,
    kind: str,
    message: str,
) -> None:
    def end(_job: Work) -> None:
        raise error

    job_id = client.enqueue("end", queue="ending", max_attempts=1, lease=7)
    with working(client, {"end": end}, "ending"):
        [attempt] = ended(client, job_id)

    assert (attempt["error_type"], attempt["error_message"]) == (kind, message)
    job = client.job(job_id)
    assert (job["state"], job["losses"]) == ("failed", 0)
    [record] = [each for each in caplog.records if each.name == "tenure.client"]
    assert f"job {job_id} (end): attempt 1 of 1 failed" in record.getMessage()
    assert kind in record.getMessage()


def test_a_result_that_cannot_be_sent_is_a_failed_attempt(service: Service, client: Client) -> None:
    job_id = client.enqueue("odd", queue="odd", max_attempts=1)
    with working(client, {"odd": lambda _job: object()}, "odd"):
        [attempt] = ended(client, job_id)

    assert attempt["error_type"] == "TypeError"


class Noting(Client):
    """A client that notes what it asks for, and how many jobs it said that it holds."""

    acquires: list[int]

    def call(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, **options: Any
    ) -> dict[str, Any]:
        if path.endswith(":acquire") and body is not None:
            self.acquires.append(body["holding"])
        return super().call(method, path, body, **options)


def test_a_worker_says_what_it_holds_and_takes_nothing_beside_a_suspect(service: Service) -> None:
    """What a suspect takes with it when it kills its process is itself."""
    began, end = threading.Event(), threading.Event()

    def suspicious(job: Work) -> bool:
        began.set()
        end.wait(30)
        return job.suspect

    with Noting(service.url, service.secret) as client:
        client.acquires = []
        job_id = client.enqueue("suspicious", queue="suspicious")
        with psycopg.connect(service.database, autocommit=True) as connection:
            connection.execute("UPDATE tenure.job SET suspect = true WHERE id = %s", [int(job_id)])
        with working(client, {"suspicious": suspicious, "other": lambda _: 1}, "suspicious"):
            assert began.wait(30)
            before = list(client.acquires)
            other = client.enqueue("other", queue="suspicious")
            # A loop that is free asks at once.
            assert not wait_for(lambda: client.acquires != before, 1.5)
            end.set()
            assert wait_for(lambda: client.job(other)["state"] == "completed", 30)

        assert client.job(job_id)["result"] is True
        assert client.acquires[0] == 0
        assert client.job(other)["result"] == 1


def test_a_worker_that_holds_a_job_says_so_when_it_asks_for_more(service: Service) -> None:
    end = threading.Event()
    with Noting(service.url, service.secret) as client:
        client.acquires = []
        job_id = client.enqueue("last", queue="holding")
        with working(client, {"last": lambda _: end.wait(30)}, "holding"):
            assert wait_for(lambda: client.job(job_id)["state"] == "running", 30)
            assert wait_for(lambda: 1 in client.acquires, 30)
            end.set()
            assert wait_for(lambda: client.job(job_id)["state"] == "completed", 30)
        assert set(client.acquires) == {0, 1}
