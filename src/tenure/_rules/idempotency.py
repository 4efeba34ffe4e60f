"""Request digests, job keys, and ids as text."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import fields
from datetime import UTC, datetime, timedelta

from tenure._model.ids import JobId, Json
from tenure._model.job import JobRow, NewJob
from tenure._rules.serialization import dump
from tenure.errors import InvalidValue

_DEFAULT = NewJob("")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def digest(jobs: Sequence[NewJob]) -> str:
    """Return a request's SHA-256. Defaults are excluded, so new options don't change it."""
    request = [_explicit(job) for job in jobs]
    text = json.dumps(request, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _explicit(job: NewJob) -> dict[str, Json]:
    return {
        field.name: dump(getattr(job, field.name))
        for field in fields(job)
        if getattr(job, field.name) != getattr(_DEFAULT, field.name)
    }


def key(schema: str, job: JobRow) -> str:
    """Return a key that identifies a job to other systems. It's the same in every attempt.

    After a failover, a lost job's id may be used again. The key includes the microsecond of the
    enqueue, which distinguishes the two jobs.
    """
    return f"{schema}-{job.id}-{_base36((job.created_at - _EPOCH) // _MICROSECOND)}"


def _base36(number: int) -> str:
    # Another program that writes to the table may store any time, even one before 1970. Dividing a
    # negative number would never reach 0.
    sign, rest, digits = "-" if number < 0 else "", abs(number), ""
    while rest:
        rest, digit = divmod(rest, 36)
        digits = _DIGITS[digit] + digits
    return sign + (digits or "0")


_LONGEST = 19


def number(value: int | str, what: str = "job") -> int:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= _LONGEST:
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise InvalidValue(f"{value!r} is not a {what} id: expected a number such as 7")


def numbers(values: Iterable[int | str], what: str = "job") -> list[int]:
    """Return ids as ints. Reject a plain string, because its digits would be taken for ids."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InvalidValue(f"ids must be a list, got {values!r}; write [{values!r}]")
    return [number(one, what) for one in values]


def job_id(value: int | str) -> JobId:
    return JobId(number(value))


def job_ids(values: Iterable[int | str]) -> list[JobId]:
    return [JobId(one) for one in numbers(values)]
