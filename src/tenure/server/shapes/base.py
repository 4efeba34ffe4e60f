"""What all shapes share: unknown fields are refused in requests; durations are seconds."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field


class Asked(BaseModel):
    """A request's body. A field that is misspelt is an error, not a default."""

    model_config = ConfigDict(extra="forbid")


class Answered(BaseModel):
    """An answer's body."""

    model_config = ConfigDict(from_attributes=True)


Name = Annotated[str, Field(min_length=1, max_length=200)]
Opaque = Annotated[str, Field(min_length=1, max_length=200)]
Reason = Annotated[str | None, Field(max_length=1000, description="Why, for the audit.")]
Seconds = Annotated[float, Field(ge=0, le=3_153_600_000, allow_inf_nan=False)]
Payload = Annotated[Any, Field(description="JSON, at most 256 KiB.")]


class ReasonIn(Asked):
    """Why something is done, for the audit."""

    reason: Reason = None


class DoneOut(Answered):
    """What became of it."""

    answer: str


class ProblemOut(Answered):
    """Why a request is refused, by RFC 9457; `code` stays as it is."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    errors: list[dict[str, str]] | None = None
