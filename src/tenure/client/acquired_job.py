"""A job under a lease, as its handler sees it, and what can be said of it."""

import contextlib
import threading
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx

from tenure.client.http import Client, Problem
from tenure.errors import TenureError

_AGAIN = 0.5
# What the server accepts; it keeps less.
_LONGEST_TYPE = 1_000
_LONGEST_MESSAGE = 100_000
_LONGEST_TRACE = 100_000


@dataclass(eq=False)
class Work:
    """A job under a lease. A handler may look at it, report, and should heed `stop`."""

    client: Client
    said: Mapping[str, Any]
    stop: threading.Event = field(default_factory=threading.Event)
    ends_at: float = 0.0
    due_at: float | None = None
    given_up: bool = False

    @property
    def id(self) -> str:
        """The job's id."""
        return str(self.said["id"])

    @property
    def task(self) -> str:
        """The task's name."""
        return str(self.said["task"])

    @property
    def queue(self) -> str:
        """The queue it came from."""
        return str(self.said["queue"])

    @property
    def attempt(self) -> int:
        """Which attempt this is, from 1 on."""
        return int(self.said["attempt"])

    @property
    def max_attempts(self) -> int:
        """How many attempts there are."""
        return int(self.said["max_attempts"])

    @property
    def key(self) -> str | None:
        """The key that makes the job unique within its task, if it has one."""
        key: str | None = self.said["key"]
        return key

    @property
    def timeout(self) -> float | None:
        """How many seconds the attempt may take, if that is bounded."""
        timeout: float | None = self.said["timeout"]
        return timeout

    @property
    def suspect(self) -> bool:
        """Whether its worker died under it before: it is the only job that this one holds."""
        return bool(self.said.get("suspect", False))

    @property
    def is_out_of_time(self) -> bool:
        """Whether the attempt has taken longer than it may."""
        return self.due_at is not None and time.monotonic() >= self.due_at

    @property
    def fence(self) -> str:
        """Grows with every running period: for others to refuse what comes too late."""
        return str(self.said["fence"])

    @property
    def idempotency_key(self) -> str:
        """For other systems: the same in every attempt of this job, and no other job's."""
        return str(self.said["idempotency_key"])

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
        same = {"attempt": self.attempt, "queue": self.queue, "task": self.task}
        return {"job": int(self.id), "token": int(self.fence), **same}

    def begin(self) -> None:
        """The handler begins now: its time is counted from here."""
        self.due_at = None if self.timeout is None else time.monotonic() + self.timeout

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

    def fail(self, error: BaseException, *, retry: bool = True, after: float | None = None) -> None:
        """The job has failed; it is tried again by the backoff, after so many seconds, or never."""
        told = describe(error)
        words: dict[str, Any] = {"error": told, "retry": "auto" if retry else "never"}
        if retry and after is not None:
            words |= {"retry": "after", "after": after}
        self._insist("fail", words)

    def fail_late(self) -> None:
        """The attempt is out of time: it has failed as timed out."""
        self._insist("fail", {"error": self._late})

    def give_up(self) -> None:
        """The handler is out of time and goes on all the same: the attempt is over without it, and
        the lease is renewed no more. Said once; if it is not heard, the lease runs out."""
        self.given_up = True
        with contextlib.suppress(TenureError, httpx.HTTPError):
            self._say("fail", {"error": self._late})

    @property
    def _late(self) -> Mapping[str, str]:
        return {"type": "TimedOut", "message": f"stopped after {self.timeout:g} s"}

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


def describe(error: BaseException) -> Mapping[str, str]:
    """The error as the protocol takes it: its texts are valid UTF-8 and short enough."""
    try:
        message = str(error)
    except Exception as broken:  # noqa: BLE001 - an error whose __str__ fails is still an error
        message = f"its text cannot be shown: {type(broken).__qualname__}"
    trace = "".join(traceback.format_exception(error))
    return {
        "type": _sendable(type(error).__qualname__)[:_LONGEST_TYPE],
        "message": _sendable(message)[:_LONGEST_MESSAGE],
        "trace": _sendable(trace)[-_LONGEST_TRACE:],
    }


def _sendable(text: str) -> str:
    """The text with lone surrogates escaped: JSON could not carry them."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
