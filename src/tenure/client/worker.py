"""The worker loop over HTTP: acquire, run, renew, settle."""

import logging
import os
import platform
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any, Self

import httpx

from tenure._model.outcome import GiveUp, Retry
from tenure._rules.leasing import read_claim_lease
from tenure.client.acquired_job import Work, describe
from tenure.client.http import Client, Problem
from tenure.config import DEFAULTS
from tenure.errors import LeaseLost, TenureError

log: logging.Logger = logging.getLogger("tenure.client")
# How long a handler has to end by itself after its timeout.
_STOP_WITHIN = 2.0
# How many leases one protocol request may name.
_RENEWED_AT_ONCE = 1000
_LONGEST_PAUSE = 1.0
_SHORTEST_PAUSE = 0.05
_JOIN_WITHIN = 10.0


class ClientRenewer:
    """Renews the leases of held jobs, on its own thread.

    The renewer must outlive the handlers. When the worker stops, a handler that is still running
    keeps its lease until the server accepts its result. The renewer is therefore the loop's
    outermost context.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._held: list[Work] = []
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name="tenure-client-renewer", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join(_JOIN_WITHIN)

    @property
    def held(self) -> Sequence[Work]:
        """The jobs that the worker currently holds."""
        return list(self._held)

    def add(self, one: Work) -> None:
        """Start renewing a job's lease."""
        self._held.append(one)

    def remove(self, one: Work) -> None:
        """Stop renewing a job's lease."""
        self._held.remove(one)

    def _run(self) -> None:
        while not self._done.wait(_pause(self.held)):
            try:
                due = _in_time(self.held)
                for start in range(0, len(due), _RENEWED_AT_ONCE):
                    self._renew(due[start : start + _RENEWED_AT_ONCE])
            except Exception:
                # Without this thread, every lease would expire while its handler runs.
                log.exception("renewer: renewal failed, trying again")

    def _renew(self, due: Sequence[Work]) -> None:
        sent_at = time.monotonic()
        for one, renewal in zip(due, self._ask(due), strict=False):
            if renewal["answer"] == "renewed":
                one.trust(sent_at)
            if renewal["answer"] == "lost" or renewal["cancel_requested"]:
                one.stop.set()
        for one in due:
            if time.monotonic() > one.ends_at:
                one.stop.set()

    def _ask(self, due: Sequence[Work]) -> Sequence[Any]:
        try:
            leases = [one.data["lease"] for one in due]
            answer = self._client.call("POST", "/v1/leases:renew", {"leases": leases})
        except (httpx.HTTPError, Problem) as error:
            log.warning("renewer: server refused or unreachable, error=%s", error)
            return []
        renewals: Sequence[Any] = answer["leases"]
        return renewals


def _pause(held: Sequence[Work]) -> float:
    """Return how long to wait until the next renewal or timeout."""
    now = time.monotonic()
    ends = [one.due_at - now for one in held if one.due_at is not None and not one.stop.is_set()]
    renewals: list[float] = [one.data["renew_in_ms"] / 2000 for one in held]
    return max(min([_LONGEST_PAUSE, *renewals, *ends]), _SHORTEST_PAUSE)


def _in_time(held: Sequence[Work]) -> list[Work]:
    """Return the jobs to renew. Ask handlers that timed out to stop, and later give up on them."""
    for one in held:
        if one.is_out_of_time:
            one.stop.set()
            if not one.given_up and time.monotonic() > (one.due_at or 0.0) + _STOP_WITHIN:
                log.warning("job %s: handler ignores its timeout", one.id, extra=one.about)
                one.give_up()
    return [one for one in held if not one.given_up]


# A longer wait would be cheaper, but would delay shutdown.
_LONGEST_WAIT = 5.0
_AGAIN = 0.5
# Take no more than a response can deliver quickly, because the leases have already started.
_AT_ONCE = 100
# How long to keep a job that has no handler here. If released sooner, it would come right back.
_STRANGE = 5.0
_SOON = 0.05

Handler = Callable[[Work], Any]


def work(
    client: Client,
    handlers: Mapping[str, Handler],
    *,
    queues: Sequence[str] = ("default",),
    slots: int = 4,
    lease: float | timedelta | None = None,
    name: str | None = None,
    stop: threading.Event | None = None,
) -> None:
    """Run a worker over HTTP until `stop` is set, then shut down gracefully.

    On shutdown, it waits for running handlers, however long they take, and renews their leases. It
    releases jobs that haven't started.

    Args:
        client: The client.
        handlers: Each task's handler, by task name.
        queues: The queues to serve (default: `"default"`).
        slots: How many jobs run concurrently, each on a thread (default: 4).
        lease: The lease of each job that this worker takes (default: the job's, queue's or
            installation's).
        name: The worker's name, as shown in lists (default: host and pid).
        stop: Set it to stop the worker.

    Raises:
        InvalidValue: `lease` is too short to be renewed in time, or longer than a day.
    """
    stop = stop or threading.Event()
    ttl = read_claim_lease(lease, defaults=DEFAULTS)
    worker = {
        "name": name or f"{socket.gethostname()}-{os.getpid()}",
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "version": platform.python_version(),
        "language": "python-http",
        "slots": slots,
    }
    free = threading.Semaphore(slots)
    request: dict[str, Any] = {"queues": list(queues), "worker": worker, "wait": _LONGEST_WAIT}
    if ttl is not None:
        request["lease"] = ttl.total_seconds()
    # In this order, because contexts end in reverse and the renewer must outlive the handlers.
    with ClientRenewer(client) as renewer, ThreadPoolExecutor(slots) as threads:
        while not stop.is_set():
            if any(one.suspect for one in renewer.held):
                # A worker died running this job. If this one dies too, no other job is lost.
                stop.wait(_SOON)
                continue
            if not free.acquire(timeout=_AGAIN):
                continue
            count = 1
            while count < _AT_ONCE and free.acquire(blocking=False):
                count += 1
            # Count before sending, because the number can only shrink while we wait for the
            # response.
            request |= {"count": count, "holding": len(renewer.held)}
            jobs = _acquired(client, request, stop)
            for one in jobs:
                renewer.add(one)
                threads.submit(_run, one, handlers, renewer, free, stop)
            for _ in range(count - len(jobs)):
                free.release()


def _acquired(client: Client, request: dict[str, Any], stop: threading.Event) -> list[Work]:
    sent_at = time.monotonic()
    try:
        answer = client.call("POST", "/v1/leases:acquire", request, patience=_LONGEST_WAIT)
    except (httpx.HTTPError, Problem) as error:
        log.warning("client: no jobs acquired, error=%s", error)
        stop.wait(_AGAIN)
        return []
    request["session"] = answer["session"]
    if answer["draining"]:
        stop.set()
    jobs = [Work(client, job) for job in answer["jobs"]]
    for one in jobs:
        # The lease started when the server stopped waiting. Network time counts against it.
        one.trust(sent_at + answer["waited_ms"] / 1000)
    return jobs


def _run(
    one: Work,
    handlers: Mapping[str, Handler],
    renewer: ClientRenewer,
    free: threading.Semaphore,
    stop: threading.Event,
) -> None:
    try:
        _settle(one, handlers, stop)
    except LeaseLost:
        log.warning("job %s: lease lost", one.id, extra=one.about)
    except (TenureError, httpx.HTTPError) as error:
        log.warning("job %s: result not reported, error=%s", one.id, error, extra=one.about)
    finally:
        renewer.remove(one)
        free.release()


def _settle(one: Work, handlers: Mapping[str, Handler], stop: threading.Event) -> None:
    """Run the job's handler, and settle the job according to how the handler ended."""
    handler = handlers.get(one.task)
    if handler is None and not stop.is_set():
        log.warning("client: no handler for task %r, giving the job back", one.task)
        stop.wait(_STRANGE)
    if handler is None or stop.is_set():
        one.release()
        return
    one.begin()
    try:
        result = handler(one)
    except LeaseLost:
        raise
    except BaseException as error:  # noqa: BLE001 - a handler may raise SystemExit, too
        # If it were re-raised, it would get lost in the pool's future, and the lease would expire
        # silently.
        _fail(one, error)
        return
    try:
        one.complete(result)
    except (Problem, TypeError, ValueError) as error:
        # A result that isn't JSON, or that the server rejects.
        _fail(one, error)


def _fail(one: Work, error: BaseException) -> None:
    log.warning(
        "job %s (%s): attempt %d of %d failed: %s",
        one.id,
        one.task,
        one.attempt,
        one.max_attempts,
        describe(error)["trace"],
        extra=one.about,
    )
    match error:
        case GiveUp():
            one.fail(error, retry=False)
        case Retry(after=after):
            one.fail(error, after=None if after is None else after.total_seconds())
        case _ if one.is_out_of_time:
            one.fail_late()
        case _:
            one.fail(error)
