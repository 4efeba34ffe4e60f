"""Tenure over HTTP, for programs that do not reach the database: enqueue, look, and work.

A `Client` speaks the API with one access token. `work` makes a worker of it: it acquires, keeps the
leases renewed while handlers run, and settles; what it cannot settle is sent again until the lease
is over. The fences are the server's: a result that comes too late is refused there.
"""

import contextlib
import json
import logging
import os
import platform
import socket
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Self

import httpx

from tenure.errors import LeaseLost, TenureError

__all__ = ["Client", "Handler", "Problem", "Work", "work"]

log: logging.Logger = logging.getLogger("tenure.client")
# Longer would be cheaper, and a worker that is to stop would wait for so long.
_LONGEST_WAIT = 5.0
_AGAIN = 0.5
# As many as fit into one answer that is read quickly; their leases have begun.
_AT_ONCE = 100
_LAST_WORDS = 10.0


class Problem(TenureError):
    """The server refused a request; `code` is its stable name, `status` that of HTTP."""

    def __init__(self, status: int, code: str, detail: str) -> None:
        super().__init__(f"{detail} ({code})")
        self.status = status
        self.code = code


class Client:
    """The API by one access token. May be used by several threads."""

    def __init__(self, url: str, token: str, *, timeout: float = 10.0) -> None:
        self._http = httpx.Client(
            base_url=url, timeout=timeout, headers={"Authorization": f"Bearer {token}"}
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def enqueue(
        self,
        task: str,
        args: Mapping[str, Any] | None = None,
        *,
        idempotency_key: str | None = None,
        **options: Any,
    ) -> str:
        """Enqueue a job of a task by its name; its id. With an idempotency key the same request
        can be sent again, and makes one job."""
        headers = {} if idempotency_key is None else {"Idempotency-Key": idempotency_key}
        body = {"task": task, "args": dict(args or {}), **options}
        return str(self.call("POST", "/v1/jobs", body, headers=headers)["id"])

    def job(self, job_id: str) -> Mapping[str, Any]:
        """A job as it is now."""
        return self.call("GET", f"/v1/jobs/{job_id}")

    def call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        patience: float = 0.0,
    ) -> dict[str, Any]:
        """One request and its answer; LeaseLost or Problem if it is refused. `patience` is what
        the server may take beyond the usual time."""
        timeout = httpx.Timeout(self._http.timeout.read or 10.0)
        if patience:
            timeout = httpx.Timeout(timeout.connect, read=(timeout.read or 0) + patience)
        answer = self._http.request(method, path, json=body, headers=headers, timeout=timeout)
        if answer.is_success:
            said: dict[str, Any] = answer.json()
            return said
        raise _refused(answer)


def _refused(answer: httpx.Response) -> TenureError:
    try:
        said = answer.json()
    except json.JSONDecodeError:
        said = {}
    code, detail = str(said.get("code", "unknown")), str(said.get("detail", "no reason was given"))
    if code == "lease-lost":
        return LeaseLost(detail)
    return Problem(answer.status_code, code, detail)


@dataclass(eq=False)
class Work:
    """A job under a lease. A handler may look at it, report, and should heed `stop`."""

    client: Client
    said: Mapping[str, Any]
    stop: threading.Event = field(default_factory=threading.Event)
    ends_at: float = 0.0

    @property
    def id(self) -> str:
        """The job's id."""
        return str(self.said["id"])

    @property
    def fence(self) -> str:
        """Grows with every running period: for others to refuse what comes too late."""
        return str(self.said["fence"])

    @property
    def args(self) -> Any:
        """The arguments."""
        return self.said["args"]

    @property
    def cursor(self) -> Any:
        """From where the last holder would have gone on."""
        return self.said["cursor"]

    @property
    def about(self) -> dict[str, Any]:
        """The fields of a record in the log that is about this job."""
        same = {name: self.said[name] for name in ("attempt", "queue", "task")}
        return {"job": int(self.id), "token": int(self.fence), **same}

    def trust(self, asked_at: float) -> None:
        """The lease was asked for at this instant, and granted."""
        self.ends_at = asked_at + self.said["expires_in_ms"] / 1000

    def progress(self, **report: Any) -> Mapping[str, Any]:
        """Report `cursor`, `items`, `done`, `total`, `message`; extends the lease. LeaseLost if it
        is lost. The answer's `reached` says that the job has its target, and is completed."""
        asked_at = time.monotonic()
        answer = self._say("progress", report)
        self.trust(asked_at)
        return answer

    def complete(self, result: Any = None) -> None:
        """The job is done."""
        self._insist("complete", {"result": result})

    def fail(self, error: BaseException, *, retry: bool = True) -> None:
        """The job has failed; it is tried again by the backoff, or never."""
        told = {
            "type": type(error).__qualname__,
            "message": str(error),
            "trace": "".join(traceback.format_exception(error)),
        }
        self._insist("fail", {"error": told, "retry": "auto" if retry else "never"})

    def release(self) -> None:
        """Give the job back, its attempt uncharged."""
        self._insist("release", {})

    def _say(self, verb: str, words: Mapping[str, Any]) -> Mapping[str, Any]:
        return self.client.call(
            "POST", f"/v1/leases:{verb}", {"lease": self.said["lease"], **words}
        )

    def _insist(self, verb: str, words: Mapping[str, Any]) -> None:
        """Say it until it is heard, or the lease is over: saying it twice is harmless."""
        while True:
            try:
                self._say(verb, words)
            except (httpx.HTTPError, Problem) as error:
                if isinstance(error, Problem) and error.status < 500:
                    raise
                if time.monotonic() > self.ends_at:
                    raise
                time.sleep(_AGAIN)
            else:
                return


Handler = Callable[[Work], Any]


def work(
    client: Client,
    handlers: Mapping[str, Handler],
    *,
    queues: Sequence[str] = ("default",),
    slots: int = 4,
    name: str | None = None,
    stop: threading.Event | None = None,
) -> None:
    """Work until `stop` is set: run the handler of each job's task, on as many threads as there
    are slots. What is under way then is brought to an end; what was not begun is given back."""
    stop = stop or threading.Event()
    worker = {
        "name": name or f"{socket.gethostname()}-{os.getpid()}",
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "version": platform.python_version(),
        "language": "python-http",
        "slots": slots,
    }
    free = threading.Semaphore(slots)
    asked: dict[str, Any] = {"queues": list(queues), "worker": worker, "wait": _LONGEST_WAIT}
    with ThreadPoolExecutor(slots) as threads, _renewing(client) as held:
        while not stop.is_set():
            if not free.acquire(timeout=_AGAIN):
                continue
            count = 1
            while count < _AT_ONCE and free.acquire(blocking=False):
                count += 1
            asked["count"] = count
            jobs = _acquired(client, asked, stop)
            for one in jobs:
                held.append(one)
                threads.submit(_run, one, handlers, held, free)
            for _ in range(count - len(jobs)):
                free.release()


def _acquired(client: Client, asked: dict[str, Any], stop: threading.Event) -> list[Work]:
    asked_at = time.monotonic()
    try:
        answer = client.call("POST", "/v1/leases:acquire", asked, patience=_LONGEST_WAIT)
    except (httpx.HTTPError, Problem) as error:
        log.warning("nothing can be acquired now: %s", error)
        stop.wait(_AGAIN)
        return []
    asked["session"] = answer["session"]
    if answer["draining"]:
        stop.set()
    jobs = [Work(client, said) for said in answer["jobs"]]
    for one in jobs:
        # As long as the server says that it waited; what it took on the way shortens the trust.
        one.trust(asked_at + answer["waited_ms"] / 1000)
    return jobs


def _run(
    one: Work, handlers: Mapping[str, Handler], held: list[Work], free: threading.Semaphore
) -> None:
    try:
        handler = handlers.get(str(one.said["task"]))
        if handler is None:
            one.release()
        else:
            one.complete(handler(one))
    except LeaseLost:
        log.warning("job %s: its lease is lost", one.id, extra=one.about)
    except Exception as error:  # noqa: BLE001 - whatever a handler raises
        with contextlib.suppress(TenureError, httpx.HTTPError):
            one.fail(error)
    finally:
        held.remove(one)
        free.release()


@contextmanager
def _renewing(client: Client) -> Iterator[list[Work]]:
    """The leases in this list are renewed as long as the block lasts."""
    held: list[Work] = []
    done = threading.Event()

    def renew() -> None:
        while not done.is_set():
            due = list(held)
            shortest = min((one.said["renew_in_ms"] for one in due), default=1000) / 1000
            if done.wait(min(shortest / 2, 1.0)) or not due:
                continue
            asked_at = time.monotonic()
            try:
                leases = [one.said["lease"] for one in due]
                answer = client.call("POST", "/v1/leases:renew", {"leases": leases})
            except (httpx.HTTPError, Problem) as error:
                log.warning("leases cannot be renewed now: %s", error)
                answer = {"leases": []}
            for one, renewal in zip(due, answer["leases"], strict=False):
                if renewal["answer"] == "renewed":
                    one.trust(asked_at)
                if renewal["answer"] == "lost" or renewal["cancel_requested"]:
                    one.stop.set()
            for one in due:
                if time.monotonic() > one.ends_at:
                    one.stop.set()

    thread = threading.Thread(target=renew, name="tenure-client-renewer", daemon=True)
    thread.start()
    try:
        yield held
    finally:
        done.set()
        thread.join(_LAST_WORDS)
