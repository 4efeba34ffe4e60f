"""The loop of a worker over HTTP: acquire, run, renew, settle."""

import contextlib
import logging
import os
import platform
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import httpx

from tenure._model.says import GiveUp, Retry
from tenure.client.calling import Client, Problem
from tenure.client.working import Work
from tenure.errors import LeaseLost, TenureError

log: logging.Logger = logging.getLogger("tenure.client")
# Longer would be cheaper, and a worker that is to stop would wait for so long.
_LONGEST_WAIT = 5.0
_AGAIN = 0.5
# As many as fit into one answer that is read quickly; their leases have begun.
_AT_ONCE = 100
_LAST_WORDS = 10.0
# So long a handler that was told to stop, being out of time, has to end by itself.
_STOP_WITHIN = 2.0
# A job that nobody here has a handler for is kept so long, or it would come back at once.
_STRANGE = 5.0
_SOON = 0.05

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
                threads.submit(_run, one, handlers, held, free, stop)
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
    one: Work,
    handlers: Mapping[str, Handler],
    held: list[Work],
    free: threading.Semaphore,
    stop: threading.Event,
) -> None:
    try:
        handler = handlers.get(one.task)
        if handler is None:
            log.warning("no handler for the task %r; it is left to others", one.task)
            stop.wait(_STRANGE)
            one.release()
        else:
            one.begin()
            one.complete(handler(one))
    except LeaseLost:
        log.warning("job %s: its lease is lost", one.id, extra=one.about)
    except Exception as error:  # noqa: BLE001 - whatever a handler raises
        with contextlib.suppress(TenureError, httpx.HTTPError):
            _fail(one, error)
    finally:
        held.remove(one)
        free.release()


def _fail(one: Work, error: Exception) -> None:
    match error:
        case GiveUp():
            one.fail(error, retry=False)
        case Retry(after=after):
            one.fail(error, after=None if after is None else after.total_seconds())
        case _ if one.is_out_of_time:
            one.fail_late()
        case _:
            one.fail(error)


@contextmanager
def _renewing(client: Client) -> Iterator[list[Work]]:
    """The leases in this list are renewed as long as the block lasts."""
    held: list[Work] = []
    done = threading.Event()

    def renew() -> None:
        while not done.is_set():
            if done.wait(_pause(list(held))):
                return
            due = _in_time(list(held))
            if not due:
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


def _pause(held: Sequence[Work]) -> float:
    """How long until leases are to be renewed, or somebody is out of time."""
    now = time.monotonic()
    ends = [one.due_at - now for one in held if one.due_at is not None and not one.stop.is_set()]
    renewals: list[float] = [one.said["renew_in_ms"] / 2000 for one in held]
    return max(min([1.0, *renewals, *ends]), _SOON)


def _in_time(held: Sequence[Work]) -> list[Work]:
    """Those to be renewed. Who is out of time is told to stop; who does not is given up."""
    for one in held:
        if one.is_out_of_time:
            one.stop.set()
            if not one.given_up and time.monotonic() > (one.due_at or 0.0) + _STOP_WITHIN:
                log.warning("job %s: out of time, and goes on", one.id, extra=one.about)
                one.give_up()
    return [one for one in held if not one.given_up]
