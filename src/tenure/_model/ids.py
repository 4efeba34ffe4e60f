"""Ids and durations."""

from datetime import timedelta
from typing import Any, NewType, TypeAlias
from uuid import UUID

from tenure.errors import InvalidValue

JobId = NewType("JobId", int)
Token = NewType("Token", int)
WorkerId = NewType("WorkerId", UUID)

# A value that JSON can carry. Python's types cannot say it exactly without a recursive
# alias that callers would have to cast into, so the shape is checked in _rules.payload.
Json: TypeAlias = Any


def duration(value: float | timedelta, what: str = "a duration") -> timedelta:
    """A duration given in seconds or as what it is; InvalidValue for anything else."""
    if isinstance(value, timedelta):
        return value
    try:
        return timedelta(seconds=value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidValue(
            f"{what} is {value!r}; write a number of seconds, or a timedelta"
        ) from None
