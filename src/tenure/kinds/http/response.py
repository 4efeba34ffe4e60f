"""How a response ends a job: with a result, a retry, or a dead letter."""

import base64
import json
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from http import HTTPStatus

from tenure._model.ids import Json
from tenure._model.outcome import GiveUp, Retry
from tenure._rules.payload import MAX_RESULT
from tenure.config import DEFAULTS

# What a result keeps of a response's headers. Cookies and challenges are never kept.
KEPT_HEADERS = frozenset(
    {
        *("content-type", "content-encoding", "content-length", "date", "etag", "last-modified"),
        *("link", "location", "request-id", "retry-after", "traceparent", "x-correlation-id"),
        *("x-request-id", "x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"),
    }
)
_NEVER_KEPT = frozenset({"set-cookie", "www-authenticate", "proxy-authenticate"})
_RETRIED = frozenset({408, 425, 429})
_LONGEST_VALUE = 1024
_EXCERPT = 300
_SOONEST = timedelta(seconds=1)
_JITTER = 0.1
_TEXT_CHARSETS = {"utf-8": "utf-8", "utf8": "utf-8", "us-ascii": "ascii", "iso-8859-1": "latin-1"}
REDACTED = "[secret]"


class RequestFailed(Retry):
    """No whole response arrived: the job is retried."""


class ResponseFailed(Retry):
    """The response's status asks for another attempt."""


class ResponseRefused(GiveUp):
    """The response's status is final: the job becomes a dead letter."""


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """A response whose body was read up to a limit."""

    status: int
    headers: Sequence[tuple[str, str]]
    body: bytes
    is_truncated: bool = False

    def header(self, name: str) -> str | None:
        """Return a header's first value, or None."""
        return next((value for key, value in self.headers if key == name), None)

    def without(self, secrets: Iterable[str]) -> "HttpResponse":
        """Return the response without these secrets, which a server may have echoed."""
        headers, body = list(self.headers), self.body
        for secret in secrets:
            headers = [(name, value.replace(secret, REDACTED)) for name, value in headers]
            body = body.replace(secret.encode(), REDACTED.encode())
        return HttpResponse(self.status, headers, body, self.is_truncated)


def conclude(
    response: HttpResponse,
    *,
    keep: frozenset[str] = frozenset(),
    now: datetime,
    limit: int = MAX_RESULT,
) -> dict[str, Json]:
    """Return the job's result.

    Args:
        response: The response.
        keep: Headers that the result keeps in addition to `KEPT_HEADERS`.
        now: The time, for a `Retry-After` with a date.
        limit: The most bytes of JSON that the result may have. A longer body is cut.

    Returns:
        The status, some headers, and the body.

    Raises:
        ResponseFailed: The status is 408, 425, 429 or from 500.
        ResponseRefused: It is any other status than 2xx.
    """
    status = response.status
    if 200 <= status < 300:
        return _result(response, keep, limit)
    if status in _RETRIED or status >= 500:
        raise ResponseFailed(_described(response), after=retry_after(response, now))
    raise ResponseRefused(_described(response))


def retry_after(response: HttpResponse, now: datetime) -> timedelta | None:
    """Return how long the server asks to wait, from 1 s to the backoff's cap, or None."""
    text = (response.header("retry-after") or "").strip()
    if text.isascii() and text.isdigit():
        wait = timedelta(seconds=min(int(text[:12]), 10**9))
    else:
        try:
            wait = _instant(text) - _server_time(response, now)
        except (TypeError, ValueError, OverflowError):
            return None
    # Without jitter, all jobs that one outage delayed would return in the same second.
    wait *= 1 + _JITTER * random.random()  # noqa: S311 - it spreads load
    return min(max(wait, _SOONEST), DEFAULTS.backoff.cap)


def _server_time(response: HttpResponse, now: datetime) -> datetime:
    """Return the server's own time, because its clock may differ from ours."""
    try:
        return _instant(response.header("date") or "")
    except (TypeError, ValueError):
        return now


def _instant(text: str) -> datetime:
    at = parsedate_to_datetime(text)
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at


def _described(response: HttpResponse) -> str:
    """Describe a failure: the status on the first line, then the start of the body."""
    try:
        phrase = HTTPStatus(response.status).phrase
    except ValueError:
        phrase = "with an unknown status"
    line = f"the server answered {response.status} {phrase}"
    if 300 <= response.status < 400:
        line += "; redirects are not followed, so use the final URL"
    text = _text(response)
    return line if not text else f"{line}\n{text[:_EXCERPT]}"


def _result(response: HttpResponse, keep: frozenset[str], limit: int) -> dict[str, Json]:
    names = (KEPT_HEADERS | keep) - _NEVER_KEPT
    headers: dict[str, Json] = {
        name: value[:_LONGEST_VALUE] for name, value in response.headers if name in names
    }
    if _size(headers) > limit // 4:
        headers = {}
    room = limit - _size({"status": 0, "headers": headers}) - 100
    text = _text(response)
    # A text of control characters grows sixfold in JSON. Base64 is then shorter.
    if text is None or _size(text) > 2 * len(response.body) + 2:
        fits = response.body[: room // 4 * 3]
        return {
            "status": response.status,
            "headers": headers,
            "body": base64.b64encode(fits).decode(),
            "encoding": "base64",
            "truncated": response.is_truncated or len(fits) < len(response.body),
        }
    fits_text = _cut(text, room)
    return {
        "status": response.status,
        "headers": headers,
        "body": fits_text,
        "encoding": "text",
        "truncated": response.is_truncated or len(fits_text) < len(text),
    }


def _text(response: HttpResponse) -> str | None:
    """Return the body as text, or None if it is binary."""
    _, _, parameters = (response.header("content-type") or "").lower().partition("charset=")
    charset = _TEXT_CHARSETS.get(parameters.partition(";")[0].strip(' "') or "utf-8")
    if charset is None or (response.header("content-encoding") or "identity") not in {
        *("identity", "gzip", "x-gzip", "deflate"),
    }:
        return None
    body = response.body
    for last in range(4 if response.is_truncated and charset == "utf-8" else 1):
        # The limit may have cut the last character.
        try:
            text = body[: len(body) - last].decode(charset)
        except UnicodeDecodeError:
            continue
        return None if "\x00" in text else text
    return None


def _size(value: Json | Mapping[str, Json]) -> int:
    return len(json.dumps(value, ensure_ascii=False).encode())


def _cut(text: str, room: int) -> str:
    """Return the longest start of a text that fits into `room` bytes of JSON."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if _size(text[:middle]) <= room:
            low = middle
        else:
            high = middle - 1
    return text[:low]
