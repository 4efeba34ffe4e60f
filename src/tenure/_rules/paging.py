"""Page tokens: where a list resumes, as opaque text."""

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
    return f"{place.before}" if place.day is None else f"{place.before}-{place.day:%Y%m%d}"


def place(text: str) -> PageCursor:
    """Parse a page token; raise InvalidValue if it isn't one."""
    match = _TOKEN.fullmatch(text)
    if match is None or int(match["before"]) >= 2**63:
        raise _not_a_token(text)
    if match["day"] is None:
        return PageCursor(JobId(int(match["before"])))
    try:
        day = datetime.strptime(match["day"], "%Y%m%d").replace(tzinfo=UTC).date()
    except ValueError:
        raise _not_a_token(text) from None
    return PageCursor(JobId(int(match["before"])), day)


def search_token(places: Mapping[JobSource, JobId]) -> str:
    return "-".join(f"{pile}{before}" for pile, before in places.items())


def search_places(text: str) -> Mapping[JobSource, JobId]:
    """Parse a search's page token; raise InvalidValue if it isn't one."""
    parts = [_SEARCH.fullmatch(part) for part in text.split("-", len(JobSource))]
    places = {JobSource(part[1]): JobId(int(part[2])) for part in parts if part}
    if len(places) != len(parts) or any(before >= 2**63 for before in places.values()):
        raise _not_a_token(text)
    return places


def group_token(task: str, signature: str | None) -> str:
    """Return the page token after a dead-letter group."""
    return urlsafe_b64encode(json.dumps([task, signature]).encode()).decode()


def group(text: str) -> tuple[str, str | None]:
    """Parse the page token for a list of groups. Raise InvalidValue if it isn't valid."""
    try:
        decoded = json.loads(urlsafe_b64decode(text.encode()))
    except (ValueError, RecursionError):
        raise _not_a_token(text) from None
    match decoded:
        case [str(task), str() | None as signature] if _is_text(task + (signature or "")):
            return task, signature
    raise _not_a_token(text)


def _is_text(value: str) -> bool:
    """Return whether the store could have returned this text."""
    return value.isprintable() or not any(c == "\x00" or "\ud800" <= c <= "\udfff" for c in value)


def _not_a_token(text: str) -> InvalidValue:
    # A token may be long, so the message doesn't repeat it.
    return InvalidValue(
        f"page token must be the `next` of the last page, got another text ({len(text)} characters)"
    )
