"""Durations as people give them: seconds, or what they are."""

from datetime import timedelta

from tenure.errors import InvalidValue


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
