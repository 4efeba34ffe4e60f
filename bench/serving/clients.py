"""`python -m bench.serving.clients URL CLIENTS COUNT`: clients that acquire and settle in
batches until they are told to stop. The access token is in BENCH_TOKEN."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import ssl
import sys
from typing import Any

import httpx

from bench.subjects import QUEUE

_WAIT = 50
# Made once: reading the certificates for each client took seconds.
_TLS = ssl.create_default_context()


async def main(url: str, clients: int, count: int) -> None:
    working = [asyncio.create_task(_client(url, n, count)) for n in range(clients)]
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await stop.wait()
    for one in working:
        one.cancel()
    await asyncio.gather(*working, return_exceptions=True)


async def _client(url: str, number: int, count: int) -> None:
    """With a pool of its own: a common one is walked through, all 200 connections, for each
    request, and took more time than all else."""
    headers = {"Authorization": f"Bearer {os.environ['BENCH_TOKEN']}"}
    async with httpx.AsyncClient(
        base_url=url, headers=headers, timeout=_WAIT + 30, verify=_TLS, trust_env=False
    ) as http:
        await _work(http, number, count)


async def _work(http: httpx.AsyncClient, number: int, count: int) -> None:
    request: dict[str, Any] = {
        "queues": [QUEUE],
        "worker": {"name": f"client-{number}", "slots": count},
        "count": count,
        "wait": _WAIT,
    }
    while True:
        # A server that is being asked for more than it can do answers late, not never.
        with contextlib.suppress(httpx.HTTPError):
            acquired = (await http.post("/v1/leases:acquire", json=request)).json()
            request["session"] = acquired["session"]
            endings = [{"complete": {"lease": job["lease"]}} for job in acquired["jobs"]]
            if endings:
                await http.post("/v1/leases:settle", json={"endings": endings})


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
