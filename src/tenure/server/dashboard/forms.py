"""Turn form fields into request models."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from tenure.server.problems import ProblemError, invalid
from tenure.server.schemas.base import ReasonIn
from tenure.server.schemas.installation import PauseIn

S = TypeVar("S", bound=BaseModel)
Fields = Mapping[str, str]


def parse(shape: type[S], **fields: Any) -> S:
    """Build a request model from fields. Invalid fields are named in a 422 response."""
    try:
        return shape(**fields)
    except ValidationError as error:
        raise invalid(error.errors()) from error


def text(fields: Fields, name: str) -> str | None:
    """Return a field's stripped text, or None if it is empty."""
    return fields.get(name, "").strip() or None


def instant(fields: Fields, name: str) -> str | None:
    """Return a field's time, which forms submit in UTC."""
    written = text(fields, name)
    return None if written is None else f"{written}Z"


def to(fields: Fields, otherwise: str) -> str:
    """Return the path to redirect to. Only paths on this server are allowed."""
    path = text(fields, "to") or otherwise
    inside = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return path if inside else otherwise


def why(fields: Fields) -> ReasonIn:
    """Read the reason for the audit log."""
    return parse(ReasonIn, reason=text(fields, "reason"))


_LONGEST = 6


def pause(fields: Fields) -> PauseIn:
    """Read a pause: for a number of minutes, or until resumed."""
    minutes = text(fields, "minutes")
    until = None
    if minutes is not None:
        if not (minutes.isascii() and minutes.isdigit() and len(minutes) <= _LONGEST):
            raise ProblemError("invalid", "minutes must be a number of minutes")
        until = datetime.now(UTC) + timedelta(minutes=int(minutes))
    return parse(PauseIn, until=until, reason=text(fields, "reason"))
