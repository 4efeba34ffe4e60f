"""Renewal of the leases that a worker over HTTP holds, from their claim until they are settled."""

import logging
import threading
import time
from collections.abc import Sequence
from typing import Any, Self

import httpx

from tenure.client.calling import Client, Problem
from tenure.client.working import Work

log: logging.Logger = logging.getLogger("tenure.client")
# How long a handler has to end by itself once its timeout has passed.
_STOP_WITHIN = 2.0
# How many leases one request of the protocol may name.
_AT_ONCE = 1000
_LONGEST_PAUSE = 1.0
_SHORTEST_PAUSE = 0.05
_JOIN_WITHIN = 10.0


class Renewer:
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
                for start in range(0, len(due), _AT_ONCE):
                    self._renew(due[start : start + _AT_ONCE])
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
