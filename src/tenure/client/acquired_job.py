"""A job held by the HTTP worker, as its handler sees it."""

import contextlib
import threading
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx

from tenure._model.outcome import FinalReport, Finished
from tenure._rules.leasing import read_extension
from tenure._rules.payload import check_report
from tenure.client.http import Client, Problem
from tenure.errors import TenureError

_BUSY = 429
_AGAIN = 0.5
# The longest texts the server accepts. It stores shorter ones.
_LONGEST_TYPE = 1_000
_LONGEST_MESSAGE = 100_000
_LONGEST_TRACE = 100_000


@dataclass(eq=False)
class Work:
    """A job that the HTTP worker holds under a lease.

    The handler can read it and report progress, and should stop when `stop` is set.

    Attributes:
        client: The client that acquired the job.
        data: The server's response.
        stop: Set when the handler must stop.
        ends_at: When the lease ends, on the `time.monotonic()` clock.
        due_at: When the attempt times out, on the `time.monotonic()` clock, or None.
        given_up: Whether the worker gave up waiting for the handler.
    """

    client: Client
    data: Mapping[str, Any]
    stop: threading.Event = field(default_factory=threading.Event)
    ends_at: float = 0.0
    due_at: float | None = None
    given_up: bool = False

    @property
    def id(self) -> str:
        """The job's id."""
        return str(self.data["id"])

    @property
    def task(self) -> str:
        """The task's name."""
        return str(self.data["task"])

    @property
    def queue(self) -> str:
        """The job's queue."""
        return str(self.data["queue"])

    @property
    def attempt(self) -> int:
        """This attempt's number, starting at 1."""
        return int(self.data["attempt"])

    @property
    def max_attempts(self) -> int:
        """How many attempts the job has."""
        return int(self.data["max_attempts"])

    @property
    def key(self) -> str | None:
        """The job's deduplication key, or None."""
        key: str | None = self.data["key"]
        return key

    @property
    def timeout(self) -> float | None:
        """How many seconds the attempt may run, or None."""
        timeout: float | None = self.data["timeout"]
        return timeout

    @property
    def suspect(self) -> bool:
        """Whether a worker died while running this job. If so, this worker holds no other job."""
        return bool(self.data.get("suspect", False))

    @property
    def is_out_of_time(self) -> bool:
        """Whether the attempt has timed out."""
        return self.due_at is not None and time.monotonic() >= self.due_at

    @property
    def fence(self) -> str:
        """The fencing token, which increases each time the job is claimed."""
        return str(self.data["fence"])

    @property
    def idempotency_key(self) -> str:
        """A key for other systems, unique to this job and the same in every attempt."""
        return str(self.data["idempotency_key"])

    @property
    def args(self) -> Any:
        """The task's arguments by name."""
        return self.data["args"]

    @property
    def cursor(self) -> Any:
        """The last cursor that any attempt reported, or None."""
        return self.data["cursor"]

    @property
    def about(self) -> dict[str, Any]:
        """The fields for a log record about this job."""
        same = {"attempt": self.attempt, "queue": self.queue, "task": self.task}
        return {"job": int(self.id), "token": int(self.fence), **same}

    def begin(self) -> None:
        """Start the timeout when the handler starts."""
        self.due_at = None if self.timeout is None else time.monotonic() + self.timeout

    def trust(self, sent_at: float, *, extend: float | None = None) -> None:
        """Extend the local lease deadline after the server has granted a renewal.

        Args:
            sent_at: When the request was sent, on the `time.monotonic()` clock.
            extend: The lease that a progress report named, in seconds.
        """
        seconds = max(self.data["expires_in_ms"] / 1000, extend or 0.0)
        # The server doesn't shorten a lease either.
        self.ends_at = max(self.ends_at, sent_at + seconds)

    def progress(self, **report: Any) -> Mapping[str, Any]:
        """Report progress and extend the lease.

        Args:
            **report: `cursor`, `items`, `done`, `total`, `message` and `extend` (in seconds or as a
                timedelta), as in `Job.progress`.

        Returns:
            The server's response. `reached` is true if the report completed the job.

        Raises:
            InvalidValue: `extend` is not positive, or longer than a day.
            LeaseLost: The lease is lost.
        """
        extend = read_extension(report.pop("extend", None))
        seconds = None if extend is None else extend.total_seconds()
        if seconds is not None:
            report["extend"] = seconds
        sent_at = time.monotonic()
        answer = self._send("progress", report)
        self.trust(sent_at, extend=seconds)
        return answer

    def finished(
        self,
        reason: str,
        result: Any = None,
        *,
        cursor: Any = None,
        items: Mapping[str, Any] | None = None,
    ) -> Finished:
        """Complete the job with your own reason, by returning this from the handler.

        Args:
            reason: Why the job is done, stored as `done_reason`.
            result: The job's result.
            cursor: The last cursor.
            items: The last result rows by key. They are stored in the transaction that completes
                the job. A repeated key counts once.

        Returns:
            The value to return from the handler.

        Raises:
            InvalidValue: An item's key is not a text of 1 to 400 characters.
            PayloadError: The cursor or an item is not JSON, or is too large.
        """
        check_report(cursor, items)
        return Finished(reason, result, FinalReport(cursor, items))

    def complete(self, result: Any = None) -> None:
        """Complete the job. The worker calls this with the handler's result.

        Args:
            result: The job's result, or what `finished` returned.

        Raises:
            LeaseLost: The lease is lost.
        """
        body: dict[str, Any] = {"result": result}
        if isinstance(result, Finished):
            body = {"result": result.result, "reason": result.reason}
            if result.report is not None:
                body |= {"cursor": result.report.cursor, "items": result.report.items}
        self._insist("complete", body)

    def fail(self, error: BaseException, *, retry: bool = True, after: float | None = None) -> None:
        """Fail the attempt. The worker calls this with the handler's error.

        Args:
            error: The error.
            retry: Whether to try again (default: True).
            after: How many seconds to wait first (default: the backoff).

        Raises:
            LeaseLost: The lease is lost.
        """
        body: dict[str, Any] = {"error": describe(error), "retry": "auto" if retry else "never"}
        if retry and after is not None:
            body |= {"retry": "after", "after": after}
        self._insist("fail", body)

    def fail_late(self) -> None:
        """Fail the attempt as timed out.

        Raises:
            LeaseLost: The lease is lost.
        """
        self._insist("fail", {"error": self._late})

    def give_up(self) -> None:
        """End the attempt of a handler that ignores its timeout, and stop renewing the lease.

        The request is sent only once. If the server doesn't receive it, the lease expires.
        """
        self.given_up = True
        with contextlib.suppress(TenureError, httpx.HTTPError):
            self._send("fail", {"error": self._late})

    @property
    def _late(self) -> Mapping[str, str]:
        return {"type": "TimedOut", "message": f"stopped after {self.timeout:g} s"}

    def release(self) -> None:
        """Release the job without charging the attempt.

        Raises:
            LeaseLost: The lease is lost.
        """
        self._insist("release", {})

    def _send(self, verb: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        return self.client.call("POST", f"/v1/leases:{verb}", {"lease": self.data["lease"], **body})

    def _insist(self, verb: str, body: Mapping[str, Any]) -> None:
        """Retry the request until it succeeds or the lease ends. Retrying is safe."""
        while True:
            try:
                self._send(verb, body)
            except (httpx.HTTPError, Problem) as error:
                if isinstance(error, Problem) and error.status < 500 and error.status != _BUSY:
                    raise
                if time.monotonic() > self.ends_at:
                    raise
                time.sleep(_AGAIN)
            else:
                return


def describe(error: BaseException) -> Mapping[str, str]:
    """Return the error in the protocol's format, with valid texts that are short enough."""
    try:
        message = str(error)
    except Exception as broken:  # noqa: BLE001 - an error whose __str__ raises is still an error
        message = f"the message cannot be shown: {type(broken).__qualname__}"
    trace = "".join(traceback.format_exception(error))
    return {
        "type": _sendable(type(error).__qualname__)[:_LONGEST_TYPE],
        "message": _sendable(message)[:_LONGEST_MESSAGE],
        "trace": _sendable(trace)[-_LONGEST_TRACE:],
    }


def _sendable(text: str) -> str:
    """Escape lone surrogates, which JSON cannot encode."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
