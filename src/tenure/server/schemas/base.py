"""Base models. Requests reject unknown fields, and durations are in seconds."""

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
    WithJsonSchema,
)

from tenure.config import FOREVER


class RequestModel(BaseModel):
    """A request body. Misspelled fields are rejected."""

    model_config = ConfigDict(extra="forbid")


class ResponseModel(BaseModel):
    """A response body."""

    model_config = ConfigDict(from_attributes=True)

    @classmethod
    def of(cls, row: object, **other: Any) -> Self:
        """Build the model from a row's fields of the same names, and from other values."""
        names = cls.model_fields.keys() - other.keys()
        return cls.model_validate({name: getattr(row, name) for name in names} | other)


def _as_text(value: object) -> object:
    return str(value) if isinstance(value, int | UUID) else value


def _in_seconds(value: object) -> object:
    return value.total_seconds() if isinstance(value, timedelta) else value


# Ids are strings over the wire: JSON numbers lose precision above 53 bits in some clients.
IdOut = Annotated[str, BeforeValidator(_as_text)]
SecondsOut = Annotated[float, BeforeValidator(_in_seconds)]


def _within_the_calendar(instant: datetime) -> datetime:
    """Convert to UTC, because PostgreSQL doesn't accept every offset.

    Reject dates so close to the calendar's limits that they can't be represented in other time
    zones.
    """
    if not MINYEAR < instant.year < MAXYEAR:
        raise ValueError("the year must be from 2 to 9998")
    return instant.astimezone(UTC)


Instant = Annotated[AwareDatetime, AfterValidator(_within_the_calendar)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
SelectorText = Annotated[
    str,
    Field(
        max_length=4000,
        description="A selector, in the syntax used by the dashboard and the CLI.",
        examples=["state:failed task:mail.send created:<2h"],
    ),
]
Opaque = Annotated[str, Field(min_length=1, max_length=200)]
Reason = Annotated[str | None, Field(max_length=1000, description="The reason, for the audit log.")]
Seconds = Annotated[float, Field(ge=0, le=3_153_600_000, allow_inf_nan=False)]


def _forever_in_seconds(value: object) -> object:
    return FOREVER.total_seconds() if value == "forever" else value


# JSON Schema can't tell from the validator that a text is accepted.
KeyFor = Annotated[
    Seconds,
    BeforeValidator(_forever_in_seconds),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "number", "minimum": 0, "maximum": FOREVER.total_seconds()},
                {"type": "string", "const": "forever"},
            ]
        }
    ),
]


class ReasonIn(RequestModel):
    """A reason, for the audit log."""

    reason: Reason = None


class ActionResult(ResponseModel):
    """An action's result."""

    result: Annotated[str, Field(description="What happened, for example `retried`.")]


class ProblemOut(ResponseModel):
    """An RFC 9457 problem. Compare `code`, which never changes."""

    type: Annotated[str, Field(description="A URN with the code.")]
    title: Annotated[str, Field(description="The kind of problem.")]
    status: Annotated[int, Field(description="The HTTP status.")]
    code: str
    detail: Annotated[str, Field(description="The cause, and what to do.")]
    errors: Annotated[
        list[dict[str, str]] | None, Field(description="Invalid fields: `where` and `what`.")
    ] = None
