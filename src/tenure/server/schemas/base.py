"""What all shapes share: unknown fields are refused in requests; durations are seconds."""

from datetime import MAXYEAR, MINYEAR, UTC, datetime, timedelta
from typing import Annotated, Any, Self
from uuid import UUID

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
)


class RequestModel(BaseModel):
    """A request's body. A field that is misspelt is an error, not a default."""

    model_config = ConfigDict(extra="forbid")


class ResponseModel(BaseModel):
    """An answer's body."""

    model_config = ConfigDict(from_attributes=True)

    @classmethod
    def of(cls, row: object, **other: Any) -> Self:
        """Make it of the row's fields that have the same names, and of these others."""
        names = cls.model_fields.keys() - other.keys()
        return cls.model_validate({name: getattr(row, name) for name in names} | other)


def _as_text(value: object) -> object:
    return str(value) if isinstance(value, int | UUID) else value


def _in_seconds(value: object) -> object:
    return value.total_seconds() if isinstance(value, timedelta) else value


# Ids are text over the wire: not every reader has 64 bits for a number.
IdOut = Annotated[str, BeforeValidator(_as_text)]
SecondsOut = Annotated[float, BeforeValidator(_in_seconds)]


def _within_the_calendar(instant: datetime) -> datetime:
    """The instant in UTC, for not every offset is one to the database; ValueError if it is so far
    that another zone's clock could not show it."""
    if not MINYEAR < instant.year < MAXYEAR:
        raise ValueError("is at the end of the calendar; name a year from 2 to 9998")
    return instant.astimezone(UTC)


Instant = Annotated[AwareDatetime, AfterValidator(_within_the_calendar)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
SelectorText = Annotated[
    str,
    Field(
        max_length=4000,
        description="A selector: docs/reference/selectors.md.",
        examples=["state:failed task:mail.send created:<2h"],
    ),
]
Opaque = Annotated[str, Field(min_length=1, max_length=200)]
Reason = Annotated[str | None, Field(max_length=1000, description="Why, for the audit.")]
Seconds = Annotated[float, Field(ge=0, le=3_153_600_000, allow_inf_nan=False)]
Payload = Annotated[Any, Field(description="JSON, at most 256 KiB.")]


class ReasonIn(RequestModel):
    """Why something is done, for the audit."""

    reason: Reason = None


class ActionResult(ResponseModel):
    """What a command did."""

    result: str


class ProblemOut(ResponseModel):
    """Why a request is refused, by RFC 9457; `code` stays as it is."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    errors: list[dict[str, str]] | None = None
