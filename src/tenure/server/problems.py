"""What a request is refused with: RFC 9457 problems, each with a code that stays as it is.

A problem says what, why and what to do. It never repeats a value that was sent: that may be a
secret.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.responses import Response

from tenure.errors import (
    IdempotencyConflict,
    InvalidValue,
    LeaseLost,
    OutcomeUnknown,
    PayloadError,
    QueryFailed,
    TenureError,
    TokenRefused,
    Unreachable,
)

log: logging.Logger = logging.getLogger("tenure")
_CANCELLED_BY_TIMEOUT = "57014"
_AGAIN_AFTER = "1"


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of problem: its status, and what it is in a few words."""

    status: int
    title: str


KINDS: Mapping[str, Kind] = {
    "bad-request": Kind(400, "The request is not what HTTP or JSON allow"),
    "unauthenticated": Kind(401, "No access token, or none that is let in"),
    "forbidden": Kind(403, "The access token does not allow this here"),
    "not-found": Kind(404, "There is nothing by that name"),
    "method-not-allowed": Kind(405, "That cannot be done to this"),
    "too-slow-a-body": Kind(408, "The body did not arrive in time"),
    "lease-lost": Kind(409, "The lease is no longer the job's"),
    "idempotency-conflict": Kind(409, "The idempotency key was used for another request"),
    "wrong-state": Kind(409, "The job's state does not allow this"),
    "too-large": Kind(413, "The body is larger than may be sent"),
    "invalid": Kind(422, "Something in the request is outside what is allowed"),
    "too-many-headers": Kind(431, "The headers are more than may be sent"),
    "internal": Kind(500, "The server failed; its log says why"),
    "outcome-unknown": Kind(503, "It may or may not have happened"),
    "database-away": Kind(503, "The database did not answer"),
    "too-slow": Kind(503, "The database took too long"),
}


class Problem(Exception):
    """A request that is refused. `errors` says where, if that is in the request."""

    def __init__(
        self, code: str, detail: str, *, errors: list[dict[str, str]] | None = None
    ) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.errors = errors

    @property
    def answer(self) -> Response:
        """The answer that says so."""
        kind = KINDS[self.code]
        body: dict[str, Any] = {
            "type": f"urn:tenure:problem:{self.code}",
            "title": kind.title,
            "status": kind.status,
            "code": self.code,
            "detail": self.detail,
        }
        if self.errors is not None:
            body["errors"] = self.errors
        headers = {}
        if kind.status == 401:
            headers["WWW-Authenticate"] = 'Bearer realm="tenure"'
        if kind.status == 503:
            headers["Retry-After"] = _AGAIN_AFTER
        return JSONResponse(
            body, kind.status, headers=headers, media_type="application/problem+json"
        )


def read(error: TenureError) -> Problem:
    """The problem that one of our errors is to whoever asks over HTTP."""
    match error:
        case LeaseLost():
            return Problem("lease-lost", str(error))
        case TokenRefused():
            return Problem("unauthenticated", str(error))
        case IdempotencyConflict():
            return Problem("idempotency-conflict", str(error))
        case InvalidValue() | PayloadError():
            return Problem("invalid", str(error))
        case OutcomeUnknown():
            return Problem(
                "outcome-unknown",
                "the answer was cut off; send the same again, with the same key or lease",
            )
        case Unreachable():
            return Problem("database-away", "the database did not answer; try again later")
        case QueryFailed(sqlstate=sqlstate) if sqlstate == _CANCELLED_BY_TIMEOUT:
            return Problem(
                "too-slow", "this took the database longer than it may; ask for less at once"
            )
        case QueryFailed() if error.is_data_error:
            return Problem("invalid", "a value cannot be kept: a text with NUL, or out of bounds")
        case QueryFailed() if error.is_conflict:
            return Problem("database-away", "somebody has it locked; try again")
        case QueryFailed() if error.is_temporary:
            log.error("the database refused a statement for now", exc_info=error)
            return Problem("database-away", "the database cannot do it now; try again later")
    log.error("an error of the store that no problem stands for", exc_info=error)
    return Problem("internal", "the server's log says why")


def invalid(found: Sequence[Any]) -> Problem:
    """The problem that a body or a form is not as its shape says; `errors` says where."""
    errors = [{"where": ".".join(map(str, one["loc"])), "what": str(one["msg"])} for one in found]
    where = ", ".join(one["where"] for one in errors[:3])
    return Problem("invalid", f"look at {where}; `errors` says why", errors=errors[:50])


def _of_http(error: HTTPException) -> Problem:
    match error.status_code:
        case 404:
            return Problem(
                "not-found", "there is no such resource; docs/reference/http.md lists them"
            )
        case 405:
            return Problem("method-not-allowed", "another method may be allowed here")
        case 413:
            return Problem("too-large", "send less at once")
        case _:
            return Problem("bad-request", "the request could not be read")


def install(api: FastAPI) -> None:
    """Let every error be told as a problem."""

    @api.exception_handler(Problem)
    async def _problem(_request: Request, error: Problem) -> Response:
        return error.answer

    @api.exception_handler(TenureError)
    async def _ours(_request: Request, error: TenureError) -> Response:
        return read(error).answer

    @api.exception_handler(RequestValidationError)
    async def _request(_request: Request, error: RequestValidationError) -> Response:
        return invalid(error.errors()).answer

    @api.exception_handler(HTTPException)
    async def _http(_request: Request, error: HTTPException) -> Response:
        return _of_http(error).answer

    @api.exception_handler(Exception)
    async def _any(_request: Request, error: Exception) -> Response:
        log.error("a request failed", exc_info=error)
        return Problem("internal", "the server's log says why").answer
