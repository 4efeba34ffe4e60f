"""The API by one access token: a request, its answer, and what a refusal becomes."""

import json
from collections.abc import Mapping
from typing import Any, Self

import httpx

from tenure.errors import LeaseLost, TenureError


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
        if not answer.is_success:
            raise _refused(answer)
        try:
            said: dict[str, Any] = answer.json()
        except json.JSONDecodeError:
            # A proxy's page: as if the server were away.
            raise Problem(502, "unreadable", "the answer is not JSON") from None
        return said


def _refused(answer: httpx.Response) -> TenureError:
    try:
        said = answer.json()
    except json.JSONDecodeError:
        said = {}
    code, detail = str(said.get("code", "unknown")), str(said.get("detail", "no reason was given"))
    if code == "lease-lost":
        return LeaseLost(detail)
    return Problem(answer.status_code, code, detail)
