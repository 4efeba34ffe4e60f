"""The worker loop over HTTP: acquire, run, renew, settle."""

import logging
import os
import platform
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self

import httpx

from tenure._model.outcome import GiveUp, Retry
from tenure.client.acquired_job import Work, describe
from tenure.client.http import Client, Problem
from tenure.errors import LeaseLost, TenureError

log: logging.Logger = logging.getLogger("tenure.client")
# How long a handler has to end by itself once its timeout has passed.
_STOP_WITHIN = 2.0
# How many leases one request of the protocol may name.
_RENEWED_AT_ONCE = 1000
_LONGEST_PAUSE = 1.0
_SHORTEST_PAUSE = 0.05
_JOIN_WITHIN = 10.0


class ClientRenewer:
    """Renews every lease that was added and not removed, on a thread of its own.

    It must outlive the handlers and their settles: a handler that is still running when the
    worker stops has its lease renewed until the result is accepted. So it is the outermost
    context of the loop.
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
        """The jobs whose leases are held now."""
        return list(self._held)

    def add(self, one: Work) -> None:
        """Renew this job's lease from now on."""
        self._held.append(one)

    def remove(self, one: Work) -> None:
        """Stop renewing: the job is settled, or its lease is lost."""
        self._held.remove(one)

    def _run(self) -> None:
        while not self._done.wait(_pause(self.held)):
            try:
                due = _in_time(self.held)
                for start in range(0, len(due), _RENEWED_AT_ONCE):
                    self._renew(due[start : start + _RENEWED_AT_ONCE])
            except Exception:
                # Without this thread every lease held here would run out under its handler.
                log.exception("renewer: a pass failed, trying again")

    def _renew(self, due: Sequence[Work]) -> None:
        asked_at = time.monotonic()
        for one, renewal in zip(due, self._ask(due), strict=False):
            if renewal["answer"] == "renewed":
                one.trust(asked_at)
            if renewal["answer"] == "lost" or renewal["cancel_requested"]:
                one.stop.set()
        for one in due:
            if time.monotonic() > one.ends_at:
                one.stop.set()

    def _ask(self, due: Sequence[Work]) -> Sequence[Any]:
        try:
            leases = [one.said["lease"] for one in due]
            answer = self._client.call("POST", "/v1/leases:renew", {"leases": leases})
        except (httpx.HTTPError, Problem) as error:
            log.warning("leases cannot be renewed now: %s", error)
            return []
        renewals: Sequence[Any] = answer["leases"]
        return renewals


def _pause(held: Sequence[Work]) -> float:
    """How long until leases are to be renewed, or a handler is out of time."""
    now = time.monotonic()
    ends = [one.due_at - now for one in held if one.due_at is not None and not one.stop.is_set()]
    renewals: list[float] = [one.said["renew_in_ms"] / 2000 for one in held]
    return max(min([_LONGEST_PAUSE, *renewals, *ends]), _SHORTEST_PAUSE)


def _in_time(held: Sequence[Work]) -> list[Work]:
    """Those to be renewed. A handler past its timeout is asked to stop, then given up."""
    for one in held:
        if one.is_out_of_time:
            one.stop.set()
            if not one.given_up and time.monotonic() > (one.due_at or 0.0) + _STOP_WITHIN:
                log.warning("job %s: out of time, and goes on", one.id, extra=one.about)
                one.give_up()
    return [one for one in held if not one.given_up]


# Longer would be cheaper, and a worker that is to stop would wait for so long.
_LONGEST_WAIT = 5.0
_AGAIN = 0.5
# As many as fit into one answer that is read quickly; their leases have begun.
_AT_ONCE = 100
# A job whose task has no handler here is kept this long, or it would come back at once.
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
    are slots.

    Handlers that are running then are waited for, and their leases are renewed until their
    results are settled, however long that takes. What was not begun is given back.
    """
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
    # In this order: contexts end in reverse, and the renewer must outlive the handlers.
    with ClientRenewer(client) as renewer, ThreadPoolExecutor(slots) as threads:
        while not stop.is_set():
            if any(one.suspect for one in renewer.held):
                # Its worker died under it before: if this one does, nothing else is lost with it.
                stop.wait(_SOON)
                continue
            if not free.acquire(timeout=_AGAIN):
                continue
            count = 1
            while count < _AT_ONCE and free.acquire(blocking=False):
                count += 1
            # Counted before it is sent: while the answer is waited for, it only becomes less.
            asked |= {"count": count, "holding": len(renewer.held)}
            jobs = _acquired(client, asked, stop)
            for one in jobs:
                renewer.add(one)
                threads.submit(_run, one, handlers, renewer, free, stop)
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
    renewer: ClientRenewer,
    free: threading.Semaphore,
    stop: threading.Event,
) -> None:
    try:
        _settle(one, handlers, stop)
    except LeaseLost:
        log.warning("job %s: its lease is lost", one.id, extra=one.about)
    except (TenureError, httpx.HTTPError) as error:
        log.warning("job %s: its end cannot be told: %s", one.id, error, extra=one.about)
    finally:
        renewer.remove(one)
        free.release()


def _settle(one: Work, handlers: Mapping[str, Handler], stop: threading.Event) -> None:
    """Run the job's handler and settle the job by how that ended."""
    handler = handlers.get(one.task)
    if handler is None and not stop.is_set():
        log.warning("no handler for the task %r; it is left to others", one.task)
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
        # Raised on, it would end in the pool's future, where nobody looks, and the lease would
        # run out without a word.
        _fail(one, error)
        return
    try:
        one.complete(result)
    except (Problem, TypeError, ValueError) as error:
        # A result that is not JSON, or that the server does not take.
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
