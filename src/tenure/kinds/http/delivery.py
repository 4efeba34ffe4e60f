"""Send requests: one pool of connections for each host, deadlines, and bounded bodies."""

import asyncio
import contextlib
import logging
import random
import ssl
import time
import zlib
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

import httpcore

from tenure._model.outcome import Snooze
from tenure.errors import ConfigError
from tenure.kinds.http.configuration import HttpConfig
from tenure.kinds.http.lookup import look_up
from tenure.kinds.http.network import CheckedBackend, Resolver
from tenure.kinds.http.response import HttpResponse, RequestFailed
from tenure.kinds.http.url import Url

# How much of a body is read. The rest isn't, and the connection is closed.
MAX_BODY = 64 * 1024
_KEPT_OPEN = 5.0
_MAX_POOLS = 200
_BUSY_PAUSE = 5.0
_DECODERS: Mapping[str, int] = {"gzip": 31, "x-gzip": 31, "deflate": 15}
PoolKey = tuple[str, str, int, str | None]
_is_sending: ContextVar[bool] = ContextVar("is_sending", default=False)


def _is_from_elsewhere(_: logging.LogRecord) -> bool:
    return not _is_sending.get()


# At the level debug, httpcore logs response headers, and a server may have echoed a secret. Your
# own requests are still logged.
for _name in ("connection", "http11"):
    logging.getLogger(f"httpcore.{_name}").addFilter(_is_from_elsewhere)


@dataclass(slots=True)
class _HostPool:
    pool: httpcore.AsyncConnectionPool
    users: int = 0
    used_at: float = field(default_factory=time.monotonic)


class HttpSender:
    """Sends requests on one event loop. Use `sender()` to get the one of this loop."""

    def __init__(self, config: HttpConfig, *, resolver: Resolver = look_up) -> None:
        self._config = config
        self._backend = CheckedBackend(config.rules, resolver)
        self._contexts: dict[str | None, ssl.SSLContext] = {}
        self._pools: dict[PoolKey, _HostPool] = {}

    async def send(
        self,
        method: str,
        url: Url,
        headers: Sequence[tuple[str, str]],
        body: bytes,
        *,
        certificate: str | None = None,
        limit: float | None = None,
    ) -> HttpResponse:
        """Send one request and read its response, once.

        Args:
            method: The method, in capitals.
            url: The URL.
            headers: The headers, without `Host` and `Content-Length`.
            body: The body.
            certificate: The name of a client certificate in the configuration.
            limit: How long the whole exchange may take (default: the configuration's).

        Returns:
            The response.

        Raises:
            AddressRefused: The rules don't allow the address.
            RequestFailed: The response didn't arrive, or not in time.
            Snooze: All connections that this host may have are in use.
            ConfigError: There is no certificate with this name.
        """
        total = self._config.total_timeout if limit is None else limit
        # A job that names its own limit allows a server to think for as long.
        silence = min(self._config.read_timeout, total) if limit is None else total
        waits = {
            "connect": min(self._config.connect_timeout, total),
            "read": silence,
            "write": silence,
            "pool": min(self._config.connect_timeout, total),
        }
        request = httpcore.Request(
            method,
            httpcore.URL(scheme=url.scheme, host=url.host, port=url.port, target=url.target),
            headers=[("host", url.host_header), *_length(method, body), *headers],
            content=body,
            extensions={"timeout": waits},
        )
        sending = _is_sending.set(True)
        try:
            async with asyncio.timeout(total), self._pool(url, certificate) as pool:
                with _translated(url):
                    response = await pool.handle_async_request(request)
                    try:
                        return await _read(response, method)
                    finally:
                        await response.aclose()
        except TimeoutError:
            raise RequestFailed(
                f"{url.origin} did not send its whole response within {total:g} s"
            ) from None
        finally:
            _is_sending.reset(sending)

    @contextlib.asynccontextmanager
    async def _pool(
        self, url: Url, certificate: str | None
    ) -> AsyncIterator[httpcore.AsyncConnectionPool]:
        await self._close_unused()
        key = (url.scheme, url.host, url.port, certificate)
        entry = self._pools.get(key)
        if entry is None:
            entry = self._pools[key] = _HostPool(
                httpcore.AsyncConnectionPool(
                    ssl_context=self.tls_context(certificate) if url.scheme == "https" else None,
                    max_connections=self._config.connections_per_host,
                    max_keepalive_connections=self._config.connections_per_host,
                    keepalive_expiry=_KEPT_OPEN,
                    http1=True,
                    http2=False,
                    retries=0,
                    network_backend=self._backend,
                )
            )
        entry.users += 1
        try:
            yield entry.pool
        finally:
            entry.users -= 1
            entry.used_at = time.monotonic()

    async def _close_unused(self) -> None:
        """Close pools that hosts no longer use: httpcore looks only at those that it uses."""
        idle = [(entry.used_at, key) for key, entry in self._pools.items() if not entry.users]
        expired = time.monotonic() - _KEPT_OPEN
        surplus = len(self._pools) - _MAX_POOLS
        for number, (used_at, key) in enumerate(sorted(idle, key=lambda item: item[0])):
            if used_at < expired or number < surplus:
                await self._pools.pop(key).pool.aclose()

    def tls_context(self, certificate: str | None) -> ssl.SSLContext:
        """Return the TLS settings: the system's authorities, `ca_file`, a client certificate.

        Raises:
            ConfigError: A file can't be read, or there is no certificate with this name.
        """
        context = self._contexts.get(certificate)
        if context is None:
            context = self._contexts[certificate] = _tls_context(self._config, certificate)
        return context

    async def aclose(self) -> None:
        """Close all connections."""
        while self._pools:
            _, entry = self._pools.popitem()
            await entry.pool.aclose()


def _tls_context(config: HttpConfig, certificate: str | None) -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if config.ca_file is not None:
        try:
            context.load_verify_locations(config.ca_file)
        except (OSError, ssl.SSLError) as error:
            raise ConfigError(
                f"ca_file in [kinds.http] must be a PEM file of certificates, got "
                f"{config.ca_file!r}: {_short(error)}"
            ) from None
    if certificate is not None:
        files = config.certificates.get(certificate)
        if files is None:
            raise ConfigError(
                f"this worker has no certificate {certificate!r}; add it to "
                "[kinds.http.certificates] of its configuration"
            )
        try:
            context.load_cert_chain(files.cert, files.key)
        except (OSError, ssl.SSLError) as error:
            raise ConfigError(
                f"certificate {certificate!r} in [kinds.http] must be PEM files of a certificate "
                f"and its key: {_short(error)}"
            ) from None
    return context


def _short(error: OSError) -> str:
    return error.strerror or type(error).__name__


_senders: WeakKeyDictionary[asyncio.AbstractEventLoop, HttpSender] = WeakKeyDictionary()
_closers: WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncIterator[None]] = WeakKeyDictionary()


async def sender(config: HttpConfig) -> HttpSender:
    """Return the sender of this event loop. Its connections are closed with the loop."""
    loop = asyncio.get_running_loop()
    found = _senders.get(loop)
    if found is None:
        found = _senders[loop] = HttpSender(config)
        # `asyncio.run` ends open generators before it closes the loop. This one closes connections.
        closer = _closers[loop] = _closing(loop, found)
        await anext(closer)
    return found


async def _closing(loop: asyncio.AbstractEventLoop, opened: HttpSender) -> AsyncIterator[None]:
    try:
        yield
    finally:
        _senders.pop(loop, None)
        _closers.pop(loop, None)
        await opened.aclose()


def _length(method: str, body: bytes) -> list[tuple[str, str]]:
    has_body = body or method not in {"GET", "HEAD", "OPTIONS"}
    return [("content-length", str(len(body)))] if has_body else []


@contextlib.contextmanager
def _translated(url: Url) -> Iterator[None]:
    """Turn what httpcore raises into what ends an attempt. No message contains an address."""
    try:
        yield
    except httpcore.PoolTimeout:
        raise Snooze(_BUSY_PAUSE * (1 + random.random())) from None  # noqa: S311 - it spreads load
    except httpcore.ConnectTimeout:
        raise RequestFailed(f"{url.origin} did not complete its TLS handshake in time") from None
    except httpcore.ConnectError as error:
        raise RequestFailed(
            f"{url.origin} failed the TLS handshake: {_tls_reason(error)}"
        ) from None
    except httpcore.ReadTimeout:
        raise RequestFailed(f"{url.origin} sent nothing for too long") from None
    except httpcore.WriteTimeout:
        raise RequestFailed(f"{url.origin} accepted no data for too long") from None
    except httpcore.RemoteProtocolError as error:
        reason = str(error).rstrip(".")[:200]
        raise RequestFailed(f"{url.origin} sent an invalid response: {reason}") from None
    except httpcore.LocalProtocolError:
        # Its text quotes headers, which may contain a secret.
        raise RequestFailed(f"the request to {url.origin} could not be written") from None
    except (httpcore.NetworkError, ssl.SSLError):
        raise RequestFailed(f"{url.origin} closed the connection before it answered") from None
    except zlib.error:
        raise RequestFailed(f"{url.origin} sent a body that is not valid gzip") from None


def _tls_reason(error: BaseException) -> str:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"its certificate is refused, {cause.verify_message}"
        if isinstance(cause, ssl.SSLError):
            return (cause.reason or "an error of TLS").lower().replace("_", " ")
        cause = cause.__cause__ or cause.__context__
    return "it closed the connection"


async def _read(response: httpcore.Response, method: str) -> HttpResponse:
    headers = [(n.decode("ascii").lower(), v.decode("latin-1")) for n, v in response.headers]
    encodings = [value.strip().lower() for name, value in headers if name == "content-encoding"]
    window = _DECODERS.get(encodings[0]) if len(encodings) == 1 else None
    decoder = None if window is None or method == "HEAD" else zlib.decompressobj(window)
    body, received = bytearray(), 0
    async for chunk in response.aiter_stream():
        received += len(chunk)
        if decoder is None:
            body += chunk
        else:
            # A megabyte of zeros is a kilobyte of gzip: the limit is on what it becomes.
            body += decoder.decompress(chunk, MAX_BODY + 1 - len(body))
        if len(body) > MAX_BODY or received > MAX_BODY:
            return HttpResponse(response.status, headers, bytes(body[:MAX_BODY]), is_truncated=True)
    if decoder is not None and received and not decoder.eof:
        raise RequestFailed("the server sent a gzip body without its end")
    return HttpResponse(response.status, headers, bytes(body))
