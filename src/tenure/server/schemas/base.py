"""What all shapes share: unknown fields are refused in requests; durations are seconds."""

from datetime import MAXYEAR, MINYEAR, UTC, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field


class RequestModel(BaseModel):
    """A request's body. A field that is misspelt is an error, not a default."""

    model_config = ConfigDict(extra="forbid")


class ResponseModel(BaseModel):
    """An answer's body."""

    model_config = ConfigDict(from_attributes=True)


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


class DoneOut(ResponseModel):
    """What became of it."""

    answer: str


class ProblemOut(ResponseModel):
    """Why a request is refused, by RFC 9457; `code` stays as it is."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    errors: list[dict[str, str]] | None = None
