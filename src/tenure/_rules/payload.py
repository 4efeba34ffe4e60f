"""What may be stored in a job: JSON limits, names and keys."""

import json
import math
import re
from collections.abc import Sequence
from datetime import datetime, timedelta
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
    """The value as JSON text, or PayloadError with what to do about it."""
    _check(value, depth=0, what=what)
    text, size = _written(value, what)
    if size > limit:
        raise PayloadError(
            f"{what} are {size:,} bytes of JSON, {limit:,} is the most; "
            "store the data elsewhere and pass a reference to it"
        )
    return text


def encode_list(values: Sequence[Json]) -> str:
    """The arguments of several jobs as the text of one list; each is checked as by `encode`."""
    for value in values:
        _check(value, depth=0, what="the arguments")
    text, size = _written(values, "the arguments")
    return text if size <= MAX_PAYLOAD else f"[{','.join(map(encode, values))}]"


def _written(value: Json, what: str) -> tuple[str, int]:
    """The text, and its length in bytes."""
    try:
        text = _JSON.encode(value)
        return text, len(text) if text.isascii() else len(text.encode())
    except (TypeError, ValueError) as error:
        raise PayloadError(f"{what} cannot be written as JSON: {error}") from error


def _check(value: Json, *, depth: int, what: str) -> None:
    """Refuse what PostgreSQL's jsonb would refuse, change or choke on."""
    if depth > MAX_DEPTH:
        raise PayloadError(f"{what} are nested more than {MAX_DEPTH} deep; flatten them")
    match value:
        case None | bool():
            return
        case float() if not math.isfinite(value):
            raise PayloadError(f"{what} hold {value}, which JSON does not have; pass None")
        case int() | float():
            # A float that large comes back from jsonb as an integer.
            if not -_BIGGEST_INT <= value < _BIGGEST_INT:
                raise PayloadError(f"{what} hold a number beyond 64 bits; pass it as a string")
        case str():
            check_text(value, what)
        case list() | tuple():
            for item in value:
                _check(item, depth=depth + 1, what=what)
        case dict():
            for name, item in value.items():
                if not isinstance(name, str):
                    raise PayloadError(
                        f"{what} have a key that is not a string: {name!r}; write it as one"
                    )
                check_text(name, what)
                _check(item, depth=depth + 1, what=what)
        case _:
            raise PayloadError(
                f"{what} hold a {type(value).__name__}, which JSON does not have; "
                "pass text, a number, a list or a dict"
            )


def check_text(text: str, what: str) -> None:
    """Refuse text that PostgreSQL cannot store."""
    if "\x00" in text:
        raise PayloadError(f"{what} cannot have a NUL character: PostgreSQL has none; remove it")
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError:
        raise PayloadError(
            f"{what} cannot have a lone surrogate: it is not text; remove it"
        ) from None


@lru_cache(maxsize=1024)
def check_name(name: str, what: str) -> None:
    """Refuse a name of a queue or task that could not be typed, shown or matched everywhere."""
    if not isinstance(name, str):
        raise InvalidValue(f"{name!r} cannot name a {what}: it is no text; write it in quotes")
    if len(name) > MAX_NAME or not _NAME.fullmatch(name):
        raise InvalidValue(
            f"{name[:60]!r} cannot name a {what}: 1 to {MAX_NAME} letters, digits and "
            "_ . : / < > @ -, beginning with a letter, digit or _"
        )


def check_key(key: str, what: str) -> None:
    """Refuse a key that an index could not hold."""
    if not isinstance(key, str):
        raise InvalidValue(f"{what} is {key!r}, which is no text; write it as one: {str(key)!r}")
    if not 0 < len(key) <= MAX_KEY:
        raise InvalidValue(f"{what} has {len(key)} characters; it must have 1 to {MAX_KEY}")
    check_text(key, what)


def check_count(count: object, what: str, *, least: int = 1, most: int = 32_767) -> None:
    """Refuse a number of attempts, losses or items that its column could not hold."""
    if count is None:
        return
    if not isinstance(count, int) or isinstance(count, bool):
        raise InvalidValue(f"{what} is {count!r}, which is no whole number; write 1 to {most:,}")
    if not least <= count <= most:
        raise InvalidValue(f"{what} is {count}; it must be {least} to {most:,}")


def _check_instant(run_at: datetime) -> None:
    if not isinstance(run_at, datetime):
        raise InvalidValue(
            f"run_at is {run_at!r}, which is no datetime; pass one with a time zone, as in "
            "datetime(2030, 1, 1, tzinfo=UTC)"
        )
    if run_at.tzinfo is None:
        raise InvalidValue("run_at has no time zone; write datetime.now(UTC) or attach one")


def check(job: NewJob) -> None:
    """Refuse a job whose fields are out of bounds."""
    check_name(job.queue, "queue")
    check_name(job.task, "task")
    if job.priority not in PRIORITIES:
        raise InvalidValue(f"priority {job.priority} is not within 0 to 9; 9 is the most urgent")
    if job.key is not None:
        check_key(job.key, "the key")
    if job.key_for is not None and (job.key is None or job.key_for < timedelta(0)):
        raise InvalidValue("key_for goes with a key and is not negative")
    for name, wait in (("key_for", job.key_for), ("delay", job.delay)):
        if wait is not None and wait > LONGEST_WAIT:
            raise InvalidValue(f"{name} is {wait}; {LONGEST_WAIT.days:,} days is the most")
    if job.run_at is not None and job.delay is not None:
        raise InvalidValue("give run_at or delay, not both")
    if job.run_at is not None:
        _check_instant(job.run_at)
    check_count(job.max_attempts, "max_attempts")
    # 0 is how a job is stored whose every loss is the end (`on_loss="fail"`).
    check_count(job.max_losses, "max_losses", least=0)
    check_count(job.target, "target", most=2_147_483_647)
    if job.lease is not None:
        check_ttl(job.lease, stop_within=timedelta(0))


def first_of_each_key(jobs: Sequence[NewJob]) -> tuple[list[int], list[int]]:
    """Which jobs to send, and for each job asked which of those answers for it.

    A key that comes twice in one call is sent once: the second is a no-op that returns the
    first, as it would be in a call of its own.
    """
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
