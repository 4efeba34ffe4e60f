"""Look up the addresses of a host, for every kind of work that connects to hosts."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Sequence
from typing import Any

from tenure.kinds.http.addresses import Address, parsed
from tenure.kinds.http.response import RequestFailed

# Each waiting lookup is a thread. A name server that doesn't respond must not use up all of them.
_MAX_LOOKUPS = 64
_lookups = threading.BoundedSemaphore(_MAX_LOOKUPS)


async def look_up(host: str, port: int) -> Sequence[Address]:
    """Return a host's addresses from the system's resolver.

    It uses a daemon thread, which doesn't delay the end of the process.

    Raises:
        RequestFailed: The name has no address, or the resolver doesn't respond.
    """
    with contextlib.suppress(ValueError):
        return [parsed(host)]
    loop = asyncio.get_running_loop()
    found: asyncio.Future[list[Any]] = loop.create_future()

    def finish(error: OSError | UnicodeError | None, rows: list[Any]) -> None:
        if found.done():
            return
        if error is None:
            found.set_result(rows)
        else:
            found.set_exception(error)

    def run() -> None:
        error: OSError | UnicodeError | None = None
        rows: list[Any] = []
        try:
            rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as raised:
            error = raised
        finally:
            _lookups.release()
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(finish, error, rows)

    if not _lookups.acquire(blocking=False):
        raise RequestFailed(f"{_MAX_LOOKUPS} lookups of names are waiting; check the name server")
    threading.Thread(target=run, name="tenure-http-lookup", daemon=True).start()
    try:
        rows = await found
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not a valid name"
        raise RequestFailed(f"host {host!r} could not be looked up: {reason}") from None
    return [parsed(row[4][0]) for row in rows]
