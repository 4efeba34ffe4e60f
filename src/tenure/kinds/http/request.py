"""A job's arguments as a request: their checks, and the bytes that they become."""

import base64
import binascii
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from tenure._model.ids import Json
from tenure._rules.secret_names import SecretNames
from tenure.errors import InvalidValue
from tenure.kinds.http.url import Url, read_url
from tenure.kinds.settings import is_secret_name

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
MAX_TIMEOUT = 300
MAX_HEADERS = 64
MAX_HEADER = 4096
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e]*")
# The connection, the client and the signature set these.
_RESERVED = frozenset(
    {
        *("host", "content-length", "transfer-encoding", "connection", "keep-alive", "te"),
        *("trailer", "upgrade", "expect", "accept-encoding", "http2-settings", "proxy-connection"),
        *("webhook-id", "webhook-timestamp", "webhook-signature"),
        *("tenure-attempt", "tenure-fence"),
    }
)
_NAMES = frozenset(
    {
        *("method", "url", "headers", "json", "body", "body_base64", "secret", "certificate"),
        "timeout",
    }
)
_SECRET_NAMES = SecretNames()


@dataclass(frozen=True, slots=True)
class SecretHeader:
    """A header's value that a worker fills in from a named secret."""

    secret: str
    prefix: str = ""


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A checked request. It names secrets, and contains none."""

    method: str
    url: Url
    headers: Mapping[str, str | SecretHeader]
    body: bytes
    secret: str | None = None
    certificate: str | None = None
    timeout: float | None = None


def read_request(arguments: Mapping[str, Json]) -> HttpRequest:
    """Return the request that a job's arguments describe.

    Raises:
        InvalidValue: An argument is invalid.
    """
    if unknown := sorted(map(str, arguments.keys() - _NAMES)):
        raise InvalidValue(
            f"http must have only the fields {', '.join(sorted(_NAMES))}, got {unknown[0]!r}; "
            "check its spelling"
        )
    url = read_url(arguments.get("url"))
    method = arguments.get("method") or "POST"
    if not isinstance(method, str) or method.upper() not in METHODS:
        raise InvalidValue(
            f"method must be one of {', '.join(METHODS)}, got {method!r}; use POST to send data"
        )
    headers = _headers(arguments.get("headers"))
    content_type, body = _body(arguments, method.upper())
    if content_type is not None:
        headers.setdefault("content-type", content_type)
    for name in ("secret", "certificate"):
        value = arguments.get(name)
        if value is not None and not is_secret_name(value):
            raise InvalidValue(
                f"{name} must be a name of letters, digits and _, got {_shown(value)}; the worker's"
                " configuration has the rest"
            )
    if arguments.get("certificate") is not None and url.scheme != "https":
        raise InvalidValue("url must begin with https:// to use a certificate; write https://…")
    return HttpRequest(
        method.upper(),
        url,
        headers,
        body,
        secret=arguments.get("secret"),
        certificate=arguments.get("certificate"),
        timeout=_timeout(arguments.get("timeout")),
    )


def check(arguments: Mapping[str, Json]) -> None:
    """Check the arguments of an enqueue. The worker checks the address when it connects.

    Raises:
        InvalidValue: An argument is invalid.
    """
    read_request(arguments)


def _shown(value: Json) -> str:
    """Describe a value that may be a secret by mistake."""
    return f"a text of {len(value)} characters" if isinstance(value, str) else repr(value)


def _timeout(value: Json) -> float | None:
    if value is None:
        return None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 < value <= MAX_TIMEOUT:
        raise InvalidValue(
            f"timeout must be more than 0 and at most {MAX_TIMEOUT} s, got {value!r}; let the "
            "server answer 202 at once if its work takes longer"
        )
    return float(value)


def _headers(value: Json) -> dict[str, str | SecretHeader]:
    if value is None:
        return {}
    if not isinstance(value, dict) or len(value) > MAX_HEADERS:
        raise InvalidValue(
            f"headers must be an object of at most {MAX_HEADERS} names and values; write "
            '{"X-Source": "shop"}'
        )
    headers: dict[str, str | SecretHeader] = {}
    for name, text in value.items():
        if not isinstance(name, str) or not _HEADER_NAME.fullmatch(name):
            raise InvalidValue(
                "a header's name must be 1 to 100 letters, digits and -; write X-Source"
            )
        lower = name.lower()
        if lower in _RESERVED or lower.startswith("proxy-"):
            raise InvalidValue(f"headers must not contain {name}, which Tenure sets; omit it")
        if lower in headers:
            raise InvalidValue(f"headers must contain {name} once; names ignore case")
        headers[lower] = _header_value(name, text)
    return headers


def _header_value(name: str, value: Json) -> str | SecretHeader:
    if isinstance(value, dict):
        prefix = value.get("prefix", "")
        is_known = value.keys() <= {"secret", "prefix"} and is_secret_name(value.get("secret"))
        if not is_known or not _is_header_text(prefix):
            raise InvalidValue(
                f'header {name} must name a secret; write {{"secret": "NAME"}}, or '
                '{"secret": "NAME", "prefix": "Bearer "}'
            )
        return SecretHeader(value["secret"], prefix)
    if not _is_header_text(value):
        raise InvalidValue(
            f"header {name} must be at most {MAX_HEADER:,} printable ASCII characters on one line; "
            "encode other text"
        )
    if _SECRET_NAMES.has(name):
        raise InvalidValue(
            f"header {name} must name a secret, because arguments are stored; write "
            f'"{name}": {{"secret": "NAME", "prefix": "Bearer "}}'
        )
    return str(value)


def _is_header_text(value: Json) -> bool:
    is_text = isinstance(value, str) and len(value) <= MAX_HEADER
    return is_text and _HEADER_VALUE.fullmatch(value) is not None


def _body(arguments: Mapping[str, Json], method: str) -> tuple[str | None, bytes]:
    """Return the content type and the bytes."""
    names = [n for n in ("json", "body", "body_base64") if arguments.get(n) is not None]
    if not names:
        return None, b""
    if len(names) > 1:
        raise InvalidValue(
            f"give only one of json, body and body_base64, got {' and '.join(names)}"
        )
    if method in {"GET", "HEAD"}:
        raise InvalidValue(f"{names[0]} must be omitted for {method}; put the data into the url")
    value = arguments[names[0]]
    if names[0] == "json":
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        return "application/json", text.encode()
    if not isinstance(value, str):
        raise InvalidValue(f"{names[0]} must be a text, got {type(value).__name__}; use json")
    if names[0] == "body":
        return "text/plain; charset=utf-8", value.encode()
    try:
        return "application/octet-stream", base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidValue("body_base64 must be base64; pass bytes as body in Python") from None
