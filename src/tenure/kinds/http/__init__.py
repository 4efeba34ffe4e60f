"""HTTP work: requests with retries, deadlines, signatures, and rules for addresses."""

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from tenure._model.ids import Json
from tenure._model.outcome import GiveUp
from tenure._rules.payload import MAX_RESULT
from tenure.config import TaskOptions
from tenure.errors import ConfigError, InvalidValue
from tenure.job import AsyncJob
from tenure.kinds.http.addresses import AddressRefused
from tenure.kinds.http.calls import HttpCalls
from tenure.kinds.http.configuration import HttpConfig, read_configuration
from tenure.kinds.http.request import (
    MAX_TIMEOUT,
    HttpRequest,
    SecretHeader,
    check,
    read_request,
)
from tenure.kinds.http.signature import sign
from tenure.kinds.settings import secret as secret_values

if TYPE_CHECKING:
    from tenure.kinds.http.delivery import HttpSender

__all__ = ["OPTIONS", "HttpCalls", "check", "handler", "prepare"]

# The request has its own deadline. This one is for a worker whose event loop is blocked.
OPTIONS: TaskOptions = {"queue": "http", "timeout": MAX_TIMEOUT + 30}


async def handler(
    job: AsyncJob,
    *,
    url: str,
    method: str = "POST",
    headers: dict[str, Any] | None = None,
    json: Json = None,
    body: str | None = None,
    body_base64: str | None = None,
    secret: str | None = None,
    certificate: str | None = None,
    timeout: float | None = None,  # noqa: ASYNC109 - the name that the job's arguments have
) -> dict[str, Json]:
    """Send one HTTP request. A 2xx response completes the job.

    Args:
        job: The job.
        url: An http or https URL.
        method: The method (default: POST).
        headers: Headers. A value can name a secret: `{"secret": "NAME", "prefix": "Bearer "}`.
        json: A body of JSON.
        body: A body of text.
        body_base64: A body of bytes, in base64.
        secret: The secret that signs the request, by name.
        certificate: The client certificate, by name.
        timeout: How long the request may take (default: `total_timeout` of the worker).

    Returns:
        The status, some headers, and the body.

    Raises:
        ResponseFailed: The status asks for a retry.
        ResponseRefused: The status is final.
        RequestFailed: No response arrived.
        AddressRefused: The worker's rules don't allow the address.
        GiveUp: An argument is invalid.
    """
    from tenure.kinds.http.delivery import sender  # noqa: PLC0415 - it needs the extra
    from tenure.kinds.http.response import conclude  # noqa: PLC0415 - see above

    try:
        request = read_request(
            {
                "url": url,
                "method": method,
                "headers": headers,
                "json": json,
                "body": body,
                "body_base64": body_base64,
                "secret": secret,
                "certificate": certificate,
                "timeout": timeout,
            }
        )
    except InvalidValue as error:
        # Another program wrote the job past the check.
        raise GiveUp(str(error)) from None
    config = _configuration()
    opened: HttpSender = await sender(config)
    filled, used = _headers(request, config)
    response = await opened.send(
        request.method,
        request.url,
        [*filled, *_identity(job, request)],
        request.body,
        certificate=request.certificate,
        limit=request.timeout,
    )
    # A sealed result is stored in base64, with a few bytes of the codec's own.
    has_codec = job._engine.sealing.has_codec  # noqa: SLF001 - only results this large need it
    limit = MAX_RESULT * 3 // 4 - 1024 if has_codec else MAX_RESULT
    keep, now = config.result_headers, datetime.now(UTC)
    return conclude(response.without(used), keep=keep, now=now, limit=limit)


def prepare() -> None:
    """Check the worker's configuration when it starts.

    Raises:
        ConfigError: The extra isn't installed, or a setting is invalid.
    """
    if find_spec("httpcore") is None or find_spec("anyio") is None:
        raise ConfigError("HTTP work needs the extra http; install it: pip install 'tenure[http]'")
    from tenure.kinds.http.delivery import HttpSender  # noqa: PLC0415 - it needs the extra

    _configuration.cache_clear()
    config = _configuration()
    opened = HttpSender(config)
    for name in (None, *config.certificates):
        opened.tls_context(name)


@lru_cache(maxsize=1)
def _configuration() -> HttpConfig:
    return read_configuration()


def _headers(
    request: HttpRequest, config: HttpConfig
) -> tuple[list[tuple[str, str]], Sequence[str]]:
    """Return the headers with their secrets, and the secrets that they contain."""
    headers = {"user-agent": "Tenure", "accept": "*/*", "accept-encoding": "identity"}
    used: list[str] = []
    for name, value in request.headers.items():
        if isinstance(value, SecretHeader):
            filled = _secret_for(value.secret, request, config)
            used.append(filled)
            headers[name] = value.prefix + filled
        else:
            headers[name] = value
    return list(headers.items()), used


def _secret_for(name: str, request: HttpRequest, config: HttpConfig) -> str:
    """Return a secret if this host may have it. Otherwise, any job could send it anywhere."""
    url = request.url
    hosts = config.secrets.get(name, ())
    if not any(host.has(url.scheme, url.host, url.port) for host in hosts):
        raise AddressRefused(
            f"secret {name!r} must not be sent to {url.origin}; a worker sends it only to hosts of "
            f'its configuration: {name} = ["{url.host}"] in [kinds.http.secrets]'
        )
    value = secret_values(name)[0]
    if not value.isascii() or not value.isprintable():
        raise ConfigError(f"secret {name!r} must be printable ASCII, to be sent in a header")
    return value


def _identity(job: AsyncJob, request: HttpRequest) -> list[tuple[str, str]]:
    """Return the headers that identify the job and its attempt, signed if the job says so."""
    message_id, timestamp = job.idempotency_key, int(time.time())
    headers = [
        ("webhook-id", message_id),
        ("webhook-timestamp", str(timestamp)),
        ("tenure-attempt", str(job.attempt)),
        ("tenure-fence", str(job.fence)),
    ]
    if request.secret is not None:
        secrets = secret_values(request.secret)
        signature = sign(secrets, request.secret, message_id, timestamp, request.body)
        headers.append(("webhook-signature", signature))
    return headers
