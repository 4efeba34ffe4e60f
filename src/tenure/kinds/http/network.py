"""Connections that go only where the worker's rules allow.

Each new connection looks its host up once, checks every address of the answer, and connects to one
of them. There is no second lookup, so a name can't change between the check and the connect. Only
the handler's modules import this one: a program that only enqueues doesn't need httpcore.
"""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

import httpcore

from tenure.kinds.http.addresses import Address, AddressRules
from tenure.kinds.http.lookup import look_up
from tenure.kinds.http.response import RequestFailed

Resolver = Callable[[str, int], Awaitable[Sequence[Address]]]
_MAX_ADDRESSES = 16


class CheckedBackend(httpcore.AsyncNetworkBackend):
    """Connect to checked addresses. SNI and the certificate's name stay those of the host."""

    def __init__(self, rules: AddressRules, resolver: Resolver = look_up) -> None:
        self._rules = rules
        self._resolver = resolver
        self._sockets = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the protocol of httpcore
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect to one of the host's addresses, after checking all of them.

        Raises:
            AddressRefused: The rules don't allow one of them.
            RequestFailed: No address accepts a connection.
        """
        limit = 5.0 if timeout is None else timeout
        until = time.monotonic() + limit
        self._rules.check_host(host, port)
        try:
            async with asyncio.timeout(limit):
                addresses = list(dict.fromkeys(await self._resolver(host, port)))
        except TimeoutError:
            raise RequestFailed(f"host {host!r} was not looked up within {limit:g} s") from None
        if not addresses:
            raise RequestFailed(f"host {host!r} has no address")
        self._rules.check(host, port, addresses)
        failure = "no answer"
        for number, address in enumerate(addresses[:_MAX_ADDRESSES]):
            left = until - time.monotonic()
            if left <= 0:
                break
            share = left / (min(len(addresses), _MAX_ADDRESSES) - number)
            try:
                return await self._sockets.connect_tcp(
                    str(address), port, max(share, min(left, 1.0)), local_address, socket_options
                )
            except httpcore.ConnectTimeout:
                failure = f"no answer within {limit:g} s"
            except httpcore.ConnectError as error:
                failure = _reason(error)
        raise RequestFailed(f"could not connect to host {host!r}: {failure}")

    async def sleep(self, seconds: float) -> None:
        """Sleep."""
        await asyncio.sleep(seconds)


def _reason(error: BaseException) -> str:
    """Return why a connect failed, without the address."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.errno:
            return os.strerror(cause.errno).lower()  # its own text names the address
        cause = cause.__cause__ or cause.__context__
    return "connection refused"
