"""Limits on what a job may contain: JSON, names and keys."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from tenure._model.ids import Json
from tenure._model.job import PRIORITIES, NewJob
from tenure._rules.leasing import check_ttl
from tenure.config import LONGEST_WAIT
from tenure.errors import InvalidValue, PayloadError

MAX_PAYLOAD = 256 * 1024
MAX_RESULT = 64 * 1024
MAX_DEPTH = 64
MAX_NAME = 200
MAX_KEY = 400
_BIGGEST_INT = 2**63
_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:/<>@-]*")


def encode(value: Json, *, limit: int = MAX_PAYLOAD, what: str = "the arguments") -> str:
    """Return the value as JSON text. Raise PayloadError if it can't be stored."""
    _check(value, depth=0, what=what)
    text, size = _written(value, what)
    if size > limit:
        raise PayloadError(
            f"{what} must be at most {limit:,} bytes of JSON, got {size:,}; store the data "
            "elsewhere and pass a reference to it"
        )
    return text


def encode_list(values: Sequence[Json]) -> str:
    """Return several jobs' arguments as one JSON list, each checked as in `encode`."""
    for value in values:
        _check(value, depth=0, what="the arguments")
    text, size = _written(values, "the arguments")
    return text if size <= MAX_PAYLOAD else f"[{','.join(map(encode, values))}]"


def _written(value: Json, what: str) -> tuple[str, int]:
    try:
        text = _JSON.encode(value)
        return text, len(text) if text.isascii() else len(text.encode())
    except (TypeError, ValueError) as error:
        raise PayloadError(f"{what} cannot be written as JSON: {error}") from error


def check_report(cursor: Json, items: Mapping[str, Json] | None) -> None:
    """Raise InvalidValue or PayloadError if a report's cursor or items can't be stored."""
    if cursor is not None:
        encode(cursor, what="the cursor")
    for key, item in (items or {}).items():
        check_key(key, "an item's key")
        encode(item, what="the items")


def check_json(value: Json, what: str) -> None:
    """Raise PayloadError if a value holds what `encode` refuses."""
    _check(value, depth=0, what=what)


def _check(value: Json, *, depth: int, what: str) -> None:
    """Reject what PostgreSQL's jsonb would reject or change."""
    if depth > MAX_DEPTH:
        raise PayloadError(f"{what} must be nested at most {MAX_DEPTH} deep; flatten them")
    match value:
        case None | bool():
            return
        case float() if not math.isfinite(value):
            raise PayloadError(
                f"{what} must not contain {value}, which JSON does not have; pass None"
            )
        case int() | float():
            # jsonb returns a float this large as an integer.
            if not -_BIGGEST_INT <= value < _BIGGEST_INT:
                raise PayloadError(
                    f"{what} must not contain a number beyond 64 bits; pass it as a string"
                )
        case str():
            check_text(value, what)
        case list() | tuple():
            for item in value:
                _check(item, depth=depth + 1, what=what)
        case dict():
            for name, item in value.items():
                if not isinstance(name, str):
                    raise PayloadError(f"{what} must have string keys, got {name!r}; convert it")
                check_text(name, what)
                _check(item, depth=depth + 1, what=what)
        case _:
            raise PayloadError(
                f"{what} must not contain a {type(value).__name__}, which JSON does not have; "
                "pass text, a number, a list or a dict"
            )


def check_text(text: str, what: str) -> None:
    """Reject text that PostgreSQL can't store."""
    if "\x00" in text:
        raise PayloadError(f"{what} must not contain NUL, which PostgreSQL cannot store; remove it")
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError:
        raise PayloadError(
            f"{what} must not contain a lone surrogate, which is not valid text; remove it"
        ) from None


@lru_cache(maxsize=1024)
def check_name(name: str, what: str) -> None:
    """Reject a name that can't be typed, shown or matched everywhere."""
    if not isinstance(name, str):
        raise InvalidValue(f"{what} name must be a str, got {name!r}")
    if len(name) > MAX_NAME or not _NAME.fullmatch(name):
        raise InvalidValue(
            f"{what} name must be 1 to {MAX_NAME} letters, digits and _ . : / < > @ -, beginning "
            f"with a letter, digit or _, got {name[:60]!r}"
        )


def check_key(key: str, what: str) -> None:
    """Reject a key that an index can't hold."""
    if not isinstance(key, str):
        raise InvalidValue(f"{what} must be a str, got {key!r}; write {str(key)!r}")
    if not 0 < len(key) <= MAX_KEY:
        raise InvalidValue(f"{what} must have 1 to {MAX_KEY} characters, got {len(key)}")
    check_text(key, what)


def check_count(count: object, what: str, *, least: int = 1, most: int = 32_767) -> None:
    """Reject a number of attempts, losses or items that its column can't hold."""
    if count is None:
        return
    if not isinstance(count, int) or isinstance(count, bool):
        raise InvalidValue(f"{what} must be an int from {least} to {most:,}, got {count!r}")
    if not least <= count <= most:
        raise InvalidValue(f"{what} must be {least} to {most:,}, got {count}")


def check_instant(run_at: datetime) -> None:
    """Reject a start time without a time zone, or outside of the calendar."""
    if not isinstance(run_at, datetime):
        raise InvalidValue(
            f"run_at must be a datetime, got {run_at!r}; write datetime(2030, 1, 1, tzinfo=UTC)"
        )
    if run_at.tzinfo is None:
        raise InvalidValue(f"run_at must have a time zone, got {run_at}; write datetime.now(UTC)")
    try:
        run_at.astimezone(UTC)
    except OverflowError:
        raise InvalidValue(
            f"run_at must be in the years 1 to 9999 in UTC, got {run_at}; choose another time"
        ) from None


def check(job: NewJob) -> None:
    check_name(job.queue, "queue")
    check_name(job.task, "task")
    if job.priority not in PRIORITIES:
        raise InvalidValue(f"priority must be 0 to 9 (9 is the most urgent), got {job.priority}")
    if job.key is not None:
        check_key(job.key, "the key")
    if job.key_for is not None and (job.key is None or job.key_for < timedelta(0)):
        raise InvalidValue("key_for needs a key and must not be negative")
    for name, wait in (("key_for", job.key_for), ("delay", job.delay)):
        if wait is not None and wait > LONGEST_WAIT:
            raise InvalidValue(f"{name} must be at most {LONGEST_WAIT.days:,} days, got {wait}")
    if job.run_at is not None and job.delay is not None:
        raise InvalidValue("give run_at or delay, not both")
    if job.run_at is not None:
        check_instant(job.run_at)
    check_count(job.max_attempts, "max_attempts")
    # 0 is stored for `on_loss="fail"`: every loss ends the job.
    check_count(job.max_losses, "max_losses", least=0)
    check_count(job.target, "target", most=2_147_483_647)
    if job.lease is not None:
        check_ttl(job.lease, stop_within=timedelta(0))


def first_of_each_key(jobs: Sequence[NewJob]) -> tuple[list[int], list[int]]:
    """Return the jobs to send, one per key, and the index of each requested job's result."""
    sent: list[int] = []
    answers: list[int] = []
    places: dict[tuple[str, str], int] = {}
    for index, job in enumerate(jobs):
        place = None if job.key is None else places.get((job.task, job.key))
        if place is None:
            place = len(sent)
            sent.append(index)
            if job.key is not None:
                places[job.task, job.key] = place
        answers.append(place)
    return sent, answers
