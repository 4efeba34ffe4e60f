"""Connections to gRPC servers, each to an address that the worker's configuration allows.

Only the handler imports this module, because it needs grpcio.

gRPC never looks up a name here: a second lookup could return a private address. Tenure looks it up
once, checks each address, and gives gRPC the addresses. The name still is the
authority of the call and the name in the server's certificate.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import version
from time import monotonic

import grpc

from tenure.errors import ConfigError
from tenure.kinds.grpc import settings
from tenure.kinds.grpc.settings import GrpcSettings
from tenure.kinds.grpc.target import GrpcTarget
from tenure.kinds.http.lookup import look_up

_MAX_ADDRESSES = 16
_MAX_CHANNELS = 64
_IDLE_FOR = 300.0
# Servers accept a ping each five minutes by default. A call without a timeout needs them, because
# it would otherwise wait forever for a server that is gone.
_PING_EVERY = 300.0
_PONG_WITHIN = 20.0
_IDENTITY_ONLY = 1

Key = tuple[object, ...]


@dataclass(slots=True)
class _Open:
    channel: grpc.aio.Channel
    users: int = 0
    used_at: float = 0.0


class Channels:
    """Channels of one event loop, limited in number and idle time."""

    def __init__(self) -> None:
        self._open: dict[Key, _Open] = {}

    @asynccontextmanager
    async def use(
        self, target: GrpcTarget, settings: GrpcSettings
    ) -> AsyncIterator[grpc.aio.Channel]:
        """Lend a channel to the target.

        Raises:
            AddressRefused: The configuration doesn't allow the target's addresses.
            RequestFailed: The name cannot be looked up.
        """
        addresses = await resolve(target, settings)
        credentials, fingerprint = _credentials(target, settings)
        key = (target, addresses, settings.max_message, fingerprint)
        entry = self._open.pop(key, None)
        if entry is None:
            entry = _Open(_dial(target, addresses, settings, credentials))
        self._open[key] = entry
        entry.users += 1
        try:
            yield entry.channel
        finally:
            entry.users -= 1
            entry.used_at = monotonic()
            await self._close_idle()

    async def _close_idle(self) -> None:
        before = monotonic() - _IDLE_FOR
        for key, entry in [*self._open.items()]:
            if entry.users:
                continue
            if entry.used_at < before or len(self._open) > _MAX_CHANNELS:
                del self._open[key]
                await entry.channel.close()

    async def close(self) -> None:
        """Close all channels."""
        while self._open:
            _, entry = self._open.popitem()
            await entry.channel.close()


_CHANNELS: dict[asyncio.AbstractEventLoop, Channels] = {}


def channels() -> Channels:
    """Return the channels of the running loop. Those of closed loops are dropped."""
    loop = asyncio.get_running_loop()
    if loop not in _CHANNELS:
        for each in [each for each in _CHANNELS if each.is_closed()]:
            del _CHANNELS[each]
        _CHANNELS[loop] = Channels()
    return _CHANNELS[loop]


async def resolve(target: GrpcTarget, settings: GrpcSettings) -> tuple[str, ...]:
    """Return the target's addresses, all of one family, in the resolver's order.

    Raises:
        AddressRefused: The rules don't allow one of them.
        RequestFailed: The name cannot be looked up.
    """
    settings.rules.check_host(target.host, target.port)
    addresses = [*dict.fromkeys(await look_up(target.host, target.port))][:_MAX_ADDRESSES]
    settings.rules.check(target.host, target.port, addresses)
    # One target of gRPC has addresses of one family.
    first = addresses[0].version
    return tuple(str(each) for each in addresses if each.version == first)


def _credentials(
    target: GrpcTarget, configured: GrpcSettings
) -> tuple[grpc.ChannelCredentials | None, bytes]:
    """Return the TLS credentials, or None for plaintext, and a fingerprint of them.

    The files are read for each call, so that a renewed certificate is used at once.
    """
    if target.authority in configured.plaintext:
        return None, b""
    ca = None if configured.ca_file is None else settings.read(configured.ca_file)
    pair = configured.certificates.get(target.authority)
    chain = None if pair is None else settings.read(pair.cert)
    key = None if pair is None else settings.read(pair.key)
    digest = hashlib.sha256()
    for part in (ca, chain, key):
        digest.update(hashlib.sha256(part or b"").digest())
    return grpc.ssl_channel_credentials(ca, key, chain), digest.digest()


def _dial(
    target: GrpcTarget,
    addresses: Sequence[str],
    settings: GrpcSettings,
    credentials: grpc.ChannelCredentials | None,
) -> grpc.aio.Channel:
    is_v6 = ":" in addresses[0]
    dialed = ",".join(
        f"[{each}]:{target.port}" if is_v6 else f"{each}:{target.port}" for each in addresses
    )
    address = f"{'ipv6' if is_v6 else 'ipv4'}:{dialed}"
    options: list[tuple[str, str | int]] = [
        ("grpc.default_authority", target.authority),
        ("grpc.enable_http_proxy", 0),
        ("grpc.service_config_disable_resolution", 1),
        ("grpc.enable_retries", 0),
        ("grpc.use_local_subchannel_pool", 1),
        ("grpc.max_receive_message_length", settings.max_message),
        ("grpc.max_send_message_length", settings.max_message),
        # The size limit applies before decompression, so compressed messages are refused.
        ("grpc.compression_enabled_algorithms_bitset", _IDENTITY_ONLY),
        # A job has its own backoff. After it, a channel must not refuse to connect.
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.max_reconnect_backoff_ms", 1000),
        ("grpc.keepalive_time_ms", int(_PING_EVERY * 1000)),
        ("grpc.keepalive_timeout_ms", int(_PONG_WITHIN * 1000)),
        ("grpc.primary_user_agent", f"tenure/{version('tenure')}"),
    ]
    if credentials is None:
        return grpc.aio.insecure_channel(address, options)
    options.append(("grpc.ssl_target_name_override", target.host))
    try:
        return grpc.aio.secure_channel(address, credentials, options)
    except ValueError as error:
        raise ConfigError(f"kinds.grpc has invalid certificates: {error}; fix the files") from None
