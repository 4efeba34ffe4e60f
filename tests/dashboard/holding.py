"""A worker that does what a test says: it speaks the protocol that any worker elsewhere speaks."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx

    from support.serving import Service
    from tenure.types import AuditRow

TRACE = """Traceback (most recent call last):
  File "/app/mail.py", line 12, in send
    connect(host)
  File "/usr/lib/python3.13/site-packages/wire/pool.py", line 90, in connect
    raise TimeoutError(host)
TimeoutError: no answer from 10.0.0.7
"""


class Holder:
    """Holds jobs of one queue under leases."""

    def __init__(self, caller: httpx.Client, queue: str, name: str) -> None:
        self.caller = caller
        self._queue = queue
        self._name = name

    def take(self) -> dict[str, Any]:
        """The next job of the queue."""
        request = {"queues": [self._queue], "worker": {"name": self._name}, "wait": 5}
        [job] = self.post("/v1/leases:acquire", request)["jobs"]
        return dict(job)

    def fail(self, job: dict[str, Any], *, message: str, **given: Any) -> None:
        """It has failed."""
        error = {"type": "TimeoutError", "message": message, "trace": TRACE} | given
        self.post("/v1/leases:fail", {"lease": job["lease"], "error": error, "retry": "never"})

    def post(self, path: str, given: dict[str, Any]) -> dict[str, Any]:
        """Say something about a lease."""
        answer = self.caller.post(path, json=given)
        if not answer.is_success:
            raise ValueError(f"{path}: {answer.text}")
        return dict(answer.json())


@contextmanager
def holding(service: Service, queue: str, name: str = "mailer") -> Iterator[Holder]:
    """A worker for one queue."""
    with service.caller() as caller:
        yield Holder(caller, queue, name)


def dead(
    service: Service, queue: str, message: str = "no answer from 10.0.0.7", **given: Any
) -> str:
    """A dead letter."""
    job_id = service.enqueue(queue, **given)
    with holding(service, queue) as holder:
        holder.fail(holder.take(), message=message)
    return job_id


def last_change(service: Service, target: str) -> AuditRow:
    """The last thing that was done to it, as the audit has it. A read may be written later."""
    rows = service.admin.audit.list(target, count=10)
    return next(row for row in rows if row.action != "payload.read")
