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

_UNSAID = NewJob("")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def digest(jobs: Sequence[NewJob]) -> str:
    """The SHA-256 of what is asked for, in order. What is not said does not enter it, so that a
    release that knows more options has the same digest for the same request."""
    asked = [_said(job) for job in jobs]
    text = json.dumps(asked, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _said(job: NewJob) -> dict[str, Json]:
    return {
        field.name: dump(getattr(job, field.name))
        for field in fields(job)
        if getattr(job, field.name) != getattr(_UNSAID, field.name)
    }


def key(schema: str, job: JobRow) -> str:
    """What other systems know a job by, in every attempt of it. Ids begin at 1 in every database,
    and one that was lost in a failover is given again; the microsecond of the enqueue, which stays
    with the job through retries and rescues, tells such jobs apart."""
    return f"{schema}-{job.id}-{_base36((job.created_at - _EPOCH) // _MICROSECOND)}"


def _base36(number: int) -> str:
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
    return digits


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
