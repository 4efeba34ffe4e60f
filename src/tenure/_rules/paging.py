"""Where a list goes on, as a text that people and programs pass back and need not read."""

import json
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from datetime import UTC, datetime

from tenure._model.ids import JobId
from tenure._model.results import JobSource, PageCursor
from tenure.errors import InvalidValue

_TOKEN = re.compile(r"(?P<before>[0-9]{1,19})(?:-(?P<day>[0-9]{8}))?")

_SEARCH = re.compile(r"([iqrfa])([0-9]{1,19})")


def token(place: PageCursor) -> str:
    """The place as text."""
    return f"{place.before}" if place.day is None else f"{place.before}-{place.day:%Y%m%d}"


def place(text: str) -> PageCursor:
    """The place that a list gave out as text; InvalidValue for any other."""
    found = _TOKEN.fullmatch(text)
    if found is None or int(found["before"]) >= 2**63:
        raise _stranger(text)
    if found["day"] is None:
        return PageCursor(JobId(int(found["before"])))
    try:
        day = datetime.strptime(found["day"], "%Y%m%d").replace(tzinfo=UTC).date()
    except ValueError:
        raise _stranger(text) from None
    return PageCursor(JobId(int(found["before"])), day)


def search_token(places: Mapping[JobSource, JobId]) -> str:
    """Where a search goes on, as text."""
    return "-".join(f"{pile}{before}" for pile, before in places.items())


def search_places(text: str) -> Mapping[JobSource, JobId]:
    """The places that a search gave out as text; InvalidValue for any other."""
    parts = [_SEARCH.fullmatch(part) for part in text.split("-", len(JobSource))]
    found = {JobSource(part[1]): JobId(int(part[2])) for part in parts if part}
    if len(found) != len(parts) or any(before >= 2**63 for before in found.values()):
        raise _stranger(text)
    return found


def group_token(task: str, signature: str | None) -> str:
    """The place after a group of dead letters, as text."""
    return urlsafe_b64encode(json.dumps([task, signature]).encode()).decode()


def group(text: str) -> tuple[str, str | None]:
    """The place that a list of groups gave out as text; InvalidValue for any other."""
    try:
        found = json.loads(urlsafe_b64decode(text.encode()))
    except (ValueError, RecursionError):
        raise _stranger(text) from None
    match found:
        case [str(task), str() | None as signature] if _is_text(task + (signature or "")):
            return task, signature
    raise _stranger(text)


def _is_text(value: str) -> bool:
    """Whether it is a text that the store could have given out."""
    return value.isprintable() or not any(c == "\x00" or "\ud800" <= c <= "\udfff" for c in value)


def _stranger(text: str) -> InvalidValue:
    return InvalidValue(
        f"{len(text)} characters that are no place in a list; pass `next` as the last page gave it"
    )
