"""Ids as people pass them on: numbers, or the texts that HTTP has for them."""

from collections.abc import Iterable

from tenure._model.ids import JobId
from tenure.errors import InvalidValue

_LONGEST = 19


def number(said: int | str, what: str = "job") -> int:
    """The id that was said, as the store compares it; InvalidValue for what cannot be one."""
    if isinstance(said, str) and said.isascii() and said.isdigit() and len(said) <= _LONGEST:
        return int(said)
    if isinstance(said, int) and not isinstance(said, bool):
        return said
    raise InvalidValue(
        f"{said!r} is no id of a {what}; it is a number, as in 7, or that number as text"
    )


def numbers(said: Iterable[int | str], what: str = "job") -> list[int]:
    """The same for several. One text is not several ids: its digits would be."""
    if isinstance(said, str) or not isinstance(said, Iterable):
        raise InvalidValue(f"ids are several: write [{said!r}]")
    return [number(one, what) for one in said]


def job_id(said: int | str) -> JobId:
    """The id of a job."""
    return JobId(number(said))


def job_ids(said: Iterable[int | str]) -> list[JobId]:
    """The ids of jobs."""
    return [JobId(one) for one in numbers(said)]
