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
class ProblemKind:
    """One kind of problem: its status, and what it is in a few words."""

    status: int
    title: str


KINDS: Mapping[str, ProblemKind] = {
    "bad-request": ProblemKind(400, "The request is not what HTTP or JSON allow"),
    "unauthenticated": ProblemKind(401, "No access token, or none that is let in"),
    "forbidden": ProblemKind(403, "The access token does not allow this here"),
    "not-found": ProblemKind(404, "There is nothing by that name"),
    "method-not-allowed": ProblemKind(405, "That cannot be done to this"),
    "too-slow-a-body": ProblemKind(408, "The body did not arrive in time"),
    "lease-lost": ProblemKind(409, "The lease is no longer the job's"),
    "idempotency-conflict": ProblemKind(409, "The idempotency key was used for another request"),
    "wrong-state": ProblemKind(409, "The job's state does not allow this"),
    "too-large": ProblemKind(413, "The body is larger than may be sent"),
    "invalid": ProblemKind(422, "Something in the request is outside what is allowed"),
    "too-many-headers": ProblemKind(431, "The headers are more than may be sent"),
    "internal": ProblemKind(500, "The server failed; its log says why"),
    "outcome-unknown": ProblemKind(503, "It may or may not have happened"),
    "database-away": ProblemKind(503, "The database did not answer"),
    "too-slow": ProblemKind(503, "The database took too long"),
}


class ProblemError(Exception):
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


def read(error: TenureError) -> ProblemError:
    """The problem that one of our errors is to whoever asks over HTTP."""
    match error:
        case LeaseLost():
            return ProblemError("lease-lost", str(error))
        case TokenRefused():
            return ProblemError("unauthenticated", str(error))
        case IdempotencyConflict():
            return ProblemError("idempotency-conflict", str(error))
        case InvalidValue() | PayloadError():
            return ProblemError("invalid", str(error))
        case OutcomeUnknown():
            return ProblemError(
                "outcome-unknown",
                "the answer was cut off; send the same again, with the same key or lease",
            )
        case Unreachable():
            return ProblemError("database-away", "the database did not answer; try again later")
        case QueryFailed(sqlstate=sqlstate) if sqlstate == _CANCELLED_BY_TIMEOUT:
            return ProblemError(
                "too-slow", "this took the database longer than it may; ask for less at once"
            )
        case QueryFailed() if error.is_data_error:
            return ProblemError(
                "invalid", "a value cannot be kept: a text with NUL, or out of bounds"
            )
        case QueryFailed() if error.is_conflict:
            return ProblemError("database-away", "somebody has it locked; try again")
        case QueryFailed() if error.is_temporary:
            log.error("the database refused a statement for now", exc_info=error)
            return ProblemError("database-away", "the database cannot do it now; try again later")
    log.error("an error of the store that no problem stands for", exc_info=error)
    return ProblemError("internal", "the server's log says why")


def invalid(found: Sequence[Any]) -> ProblemError:
    """The problem that a body or a form is not as its shape says; `errors` says where."""
    errors = [{"where": ".".join(map(str, one["loc"])), "what": str(one["msg"])} for one in found]
    where = ", ".join(one["where"] for one in errors[:3])
    return ProblemError("invalid", f"look at {where}; `errors` says why", errors=errors[:50])


def _of_http(error: HTTPException) -> ProblemError:
    match error.status_code:
        case 404:
            return ProblemError(
                "not-found", "there is no such resource; docs/reference/http.md lists them"
            )
        case 405:
            return ProblemError("method-not-allowed", "another method may be allowed here")
        case 413:
            return ProblemError("too-large", "send less at once")
        case _:
            return ProblemError("bad-request", "the request could not be read")


def install(api: FastAPI) -> None:
    """Let every error be told as a problem."""

    @api.exception_handler(ProblemError)
    async def _problem(_request: Request, error: ProblemError) -> Response:
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
        return ProblemError("internal", "the server's log says why").answer
