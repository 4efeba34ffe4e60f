"""Error responses: RFC 9457 problems, each with a stable code.

A problem explains what is wrong, why, and what to do about it. It never repeats a value from the
request, because the value may be a secret.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.responses import Response

from tenure.errors import (
    IdempotencyConflict,
    InvalidValue,
    KeyHeldElsewhere,
    LeaseLost,
    OutcomeUnknown,
    Overloaded,
    PayloadError,
    QueryFailed,
    QuotaExceeded,
    TenureError,
    TokenRefused,
    Unreachable,
)

log: logging.Logger = logging.getLogger("tenure")
_CANCELLED_BY_TIMEOUT = "57014"
_LONGEST_WAIT = 3600


@dataclass(frozen=True, slots=True)
class ProblemKind:
    """One kind of problem: its status and its title."""

    status: int
    title: str


KINDS: Mapping[str, ProblemKind] = {
    "bad-request": ProblemKind(400, "The request is not valid HTTP or JSON"),
    "unauthenticated": ProblemKind(401, "The access token is missing or not valid"),
    "forbidden": ProblemKind(403, "The access token does not allow this"),
    "not-found": ProblemKind(404, "Not found"),
    "method-not-allowed": ProblemKind(405, "This method is not allowed here"),
    "too-slow-a-body": ProblemKind(408, "The body did not arrive in time"),
    "lease-lost": ProblemKind(409, "The lease is lost"),
    "idempotency-conflict": ProblemKind(409, "The idempotency key was used for another request"),
    "key-held-elsewhere": ProblemKind(409, "A job that you may not see holds the key"),
    "wrong-state": ProblemKind(409, "The state of the job does not allow this"),
    "too-large": ProblemKind(413, "The body is too large"),
    "invalid": ProblemKind(422, "The request has invalid values"),
    "too-many-requests": ProblemKind(429, "Too many requests"),
    "too-many-headers": ProblemKind(431, "The headers are too many or too large"),
    "quota-exceeded": ProblemKind(429, "A quota is used up"),
    "wrong-host": ProblemKind(421, "This host name is not served here"),
    "internal": ProblemKind(500, "Internal server error"),
    "outcome-unknown": ProblemKind(503, "The result is unknown"),
    "database-away": ProblemKind(503, "The database is not available"),
    "too-slow": ProblemKind(503, "The database took too long"),
    "too-many-connections": ProblemKind(503, "Too many connections"),
}


class ProblemError(Exception):
    """A rejected request. `errors` lists invalid fields."""

    def __init__(
        self,
        code: str,
        detail: str,
        *,
        errors: list[dict[str, str]] | None = None,
        retry_after: float = 1.0,
    ) -> None:
        super().__init__(detail)
        self.retry_after = retry_after
        self.code = code
        self.detail = detail
        self.errors = errors

    @property
    def answer(self) -> Response:
        """The HTTP response."""
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
        if kind.status in (429, 503):
            headers["Retry-After"] = str(ceil(min(self.retry_after, _LONGEST_WAIT)))
        return JSONResponse(
            body, kind.status, headers=headers, media_type="application/problem+json"
        )


def read(error: TenureError) -> ProblemError:
    """Turn a Tenure error into a problem."""
    match error:
        case LeaseLost():
            return ProblemError("lease-lost", str(error))
        case TokenRefused():
            return ProblemError("unauthenticated", str(error))
        case KeyHeldElsewhere():
            return ProblemError("key-held-elsewhere", str(error))
        case QuotaExceeded(retry_after=retry_after):
            return ProblemError("quota-exceeded", str(error), retry_after=retry_after)
        case IdempotencyConflict():
            return ProblemError("idempotency-conflict", str(error))
        case InvalidValue() | PayloadError():
            return ProblemError("invalid", str(error))
        case OutcomeUnknown():
            return ProblemError(
                "outcome-unknown",
                "the database connection was lost. Send the same request again, with the same key "
                "or lease",
            )
        case Overloaded():
            return ProblemError("too-many-requests", "the server is busy. Try again later")
        case Unreachable():
            return ProblemError("database-away", "the database did not answer. Try again later")
        case QueryFailed(sqlstate=sqlstate) if sqlstate == _CANCELLED_BY_TIMEOUT:
            return ProblemError(
                "too-slow", "the query took too long. Ask for fewer rows, or narrow the filter"
            )
        case QueryFailed() if error.is_data_error:
            return ProblemError(
                "invalid", "a value cannot be stored: it contains NUL, or is out of range"
            )
        case QueryFailed() if error.is_conflict:
            return ProblemError("database-away", "another transaction holds a lock. Try again")
        case QueryFailed() if error.is_temporary:
            log.error("server: the database refused a statement", exc_info=error)
            return ProblemError("database-away", "the database cannot do this now. Try again later")
    log.error("server: unexpected database error", exc_info=error)
    return ProblemError("internal", "the server failed. See its log")


def invalid(mistakes: Sequence[Any]) -> ProblemError:
    """Turn validation errors into a problem. `errors` lists the fields."""
    errors = [
        {"where": ".".join(map(str, one["loc"])), "what": str(one["msg"])} for one in mistakes
    ]
    where = ", ".join(one["where"] for one in errors[:3])
    return ProblemError("invalid", f"invalid: {where}. See `errors`", errors=errors[:50])


def _of_http(error: HTTPException) -> ProblemError:
    match error.status_code:
        case 404:
            return ProblemError(
                "not-found", "there is no such route. See GET /openapi.json for all routes"
            )
        case 405:
            return ProblemError("method-not-allowed", "use another method. See GET /openapi.json")
        case 413:
            return ProblemError("too-large", "the body is too large. Send less at once")
        case _:
            return ProblemError(
                "bad-request", "the request could not be read. Check that it is valid HTTP and JSON"
            )


def install(api: FastAPI) -> None:
    """Turn every error into a problem."""

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
        log.error("server: request failed", exc_info=error)
        return ProblemError("internal", "the server failed. See its log").answer
