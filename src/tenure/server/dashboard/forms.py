"""Form fields to request models."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from tenure.server.problems import ProblemError, invalid
from tenure.server.schemas.base import ReasonIn
from tenure.server.schemas.installation import PauseIn

S = TypeVar("S", bound=BaseModel)
Fields = Mapping[str, str]


def asked(shape: type[S], **fields: Any) -> S:
    """A request's body of these fields; 422 says which of them cannot be."""
    try:
        return shape(**fields)
    except ValidationError as error:
        raise invalid(error.errors()) from error


def written(fields: Fields, name: str) -> str | None:
    """What was written, or None for nothing."""
    return fields.get(name, "").strip() or None


def instant(fields: Fields, name: str) -> str | None:
    """A day and a time of day, which a form asks for in UTC."""
    text = written(fields, name)
    return None if text is None else f"{text}Z"


def to(fields: Fields, otherwise: str) -> str:
    """Where a form leads to, if it says so: a path of ours, and nowhere else."""
    path = written(fields, "to") or otherwise
    inside = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return path if inside else otherwise


def why(fields: Fields) -> ReasonIn:
    """The reason, for the audit."""
    return asked(ReasonIn, reason=written(fields, "reason"))


_LONGEST = 6


def pause(fields: Fields) -> PauseIn:
    """For so many minutes; until resumed, if none are said."""
    minutes = written(fields, "minutes")
    until = None
    if minutes is not None:
        if not (minutes.isascii() and minutes.isdigit() and len(minutes) <= _LONGEST):
            raise ProblemError("invalid", "for how long is a number of minutes")
        until = datetime.now(UTC) + timedelta(minutes=int(minutes))
    return asked(PauseIn, until=until, reason=written(fields, "reason"))
