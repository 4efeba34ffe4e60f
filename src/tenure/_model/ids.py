"""Ids and durations."""

from datetime import timedelta
from typing import Any, NewType, TypeAlias
from uuid import UUID

from tenure.errors import InvalidValue

JobId = NewType("JobId", int)
Token = NewType("Token", int)
WorkerId = NewType("WorkerId", UUID)

# A JSON-compatible value. An exact type would need a recursive alias, which callers would have to
# cast to, so _rules.payload checks the shape.
Json: TypeAlias = Any


def duration(value: float | timedelta, what: str = "a duration") -> timedelta:
    """Return a duration given in seconds or as a timedelta. Raise InvalidValue otherwise."""
    if isinstance(value, timedelta):
        return value
    try:
        return timedelta(seconds=value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidValue(
            f"{what} must be a number of seconds or a timedelta, got {value!r}"
        ) from None
