"""The HTTP client: one access token, requests, and errors."""

import json
from collections.abc import Mapping
from typing import Any, Self

import httpx

from tenure.errors import LeaseLost, TenureError


class Problem(TenureError):
    """The server rejected a request.

    Args:
        status: The HTTP status.
        code: The problem's stable name.
        detail: The server's message.

    Attributes:
        status: The HTTP status.
        code: The problem's stable name.
    """

    def __init__(self, status: int, code: str, detail: str) -> None:
        super().__init__(f"{detail} ({code})")
        self.status = status
        self.code = code


class Client:
    """A client for the HTTP API. Threads can share it.

    Args:
        url: The server's URL.
        token: An access token.
        timeout: How many seconds to wait for a response (default: 10).
    """

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
        """Enqueue a job by task name.

        Args:
            task: The task's name.
            args: The task's arguments by name.
            idempotency_key: Repeating the request with the same key doesn't create a second job.
            **options: Other `POST /v1/jobs` fields, such as `queue`.

        Returns:
            The job's id.

        Raises:
            Problem: The server rejected the request.
        """
        headers = {} if idempotency_key is None else {"Idempotency-Key": idempotency_key}
        body = {"task": task, "args": dict(args or {}), **options}
        return str(self.call("POST", "/v1/jobs", body, headers=headers)["id"])

    def job(self, job_id: str) -> Mapping[str, Any]:
        """Get a job by id.

        Args:
            job_id: The job's id.

        Returns:
            The job as JSON.

        Raises:
            Problem: The server rejected the request, or the job does not exist.
        """
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
        """Send a request.

        Args:
            method: The HTTP method.
            path: The path, such as `"/v1/jobs"`.
            body: The JSON body.
            headers: Additional headers.
            patience: How many extra seconds to wait for the response (default: 0).

        Returns:
            The response as JSON.

        Raises:
            LeaseLost: The lease in the request is lost.
            Problem: The server rejected the request.
        """
        timeout = httpx.Timeout(self._http.timeout.read or 10.0)
        if patience:
            timeout = httpx.Timeout(timeout.connect, read=(timeout.read or 0) + patience)
        answer = self._http.request(method, path, json=body, headers=headers, timeout=timeout)
        if not answer.is_success:
            raise _refused(answer)
        try:
            content: dict[str, Any] = answer.json()
        except json.JSONDecodeError:
            # The response is a proxy's error page. Treat the server as unreachable.
            raise Problem(502, "unreadable", "the answer is not JSON") from None
        return content


def _refused(answer: httpx.Response) -> TenureError:
    try:
        problem = answer.json()
    except json.JSONDecodeError:
        problem = {}
    code = str(problem.get("code", "unknown"))
    detail = str(problem.get("detail", "no reason given"))
    if code == "lease-lost":
        return LeaseLost(detail)
    return Problem(answer.status_code, code, detail)
