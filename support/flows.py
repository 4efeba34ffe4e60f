"""Follow three flows through the source, file by file: `just flows`.

The flows are an enqueue, a job from its claim until it is settled, and a retry: by `app.admin`,
over HTTP, from the dashboard, from the command line. Each is one warm call on a private server,
followed with `sys.setprofile`.

A *call* enters a function of `src/tenure`, or resumes a generator or a coroutine. A *change of
file* is a call in another file than the call before; the first call is one too. Of a claim, all
that happens on the worker's loop counts, and nothing in its other threads. Of a retry, only the
context of the request counts; the rest that happens meanwhile is the background.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import logging
import os
import sys
import threading
from collections import Counter
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import psycopg

import tenure
from support.cluster import Cluster
from support.databases import Databases
from support.store import install
from tenure import Tenure
from tenure.admin import By
from tenure.cli import commands as cli
from tenure.server import create
from tenure.server.dashboard.session import csrf_token

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
    from types import FrameType

    from fastapi import FastAPI

SOURCE = f"{Path(tenure.__file__).parent}{os.sep}"
BY = By("ada", "test", "flows")
# A tick of a service in the background can fall into a call: the least of some is the flow itself.
CALLS = 3
CLAIMS = 10
_ENDED = "SELECT count(*) FROM tenure.job_archive"


@dataclass
class Flow:
    """What one warm call has entered, in order."""

    name: str
    steps: list[str] = field(default_factory=list)
    background: set[str] = field(default_factory=set)

    @property
    def files(self) -> list[str]:
        """Each file once, in the order in which they were first entered."""
        return list(dict.fromkeys(self.steps))

    @property
    def changes(self) -> int:
        """How often a call was in another file than the call before."""
        return sum(
            here != before for before, here in zip(["", *self.steps], self.steps, strict=False)
        )

    def __str__(self) -> str:
        more = self.background - set(self.steps)
        beside = f" (+{len(more)} in the background)" if more else ""
        return (
            f"{self.name}: {len(self.files)} files{beside}, {len(self.steps)} calls, "
            f"{self.changes} changes of file"
        )


_flow: ContextVar[Flow | None] = ContextVar("flow", default=None)


@contextlib.contextmanager
def followed(name: str, *, whole_thread: bool = False) -> Iterator[Flow]:
    """Follow what this context calls; or all that this thread does, in any context."""
    flow = Flow(name)
    thread = threading.get_ident()

    def profile(frame: FrameType, event: str, _argument: object) -> None:
        file = frame.f_code.co_filename
        if event != "call" or not file.startswith(SOURCE):
            return
        file = file.removeprefix(SOURCE)
        if _flow.get() is flow or (whole_thread and threading.get_ident() == thread):
            flow.steps.append(file)
        else:
            flow.background.add(file)

    token = _flow.set(flow)
    # Also the threads that the call starts.
    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        yield flow
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
        _flow.reset(token)


def least(flows: list[Flow]) -> Flow:
    """The flow with the fewest steps."""
    return min(flows, key=lambda flow: (len(flow.files), flow.changes))


class Flows:
    """The flows on one database, with one app."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.app = Tenure(url)
        self._greet = self.app.task(name="greet")(_greet)
        self._agreet = self.app.task(name="agreet")(_agreet)
        self._fail = self.app.task(name="fail", max_attempts=1)(_fail)

    async def aclose(self) -> None:
        """Close the connections."""
        self.app.close()
        await self.app.aclose()

    def enqueue(self) -> Flow:
        """Enqueue a job, until the answer of the INSERT."""
        return self._warm("enqueue", lambda: self._greet.enqueue(name="b"))

    async def claim(self) -> Flow:
        """Enqueue a job, claim, run and settle it: all on the loop of the worker."""
        flows = []
        async with self.app.run():
            for _ in range(1 + CLAIMS):
                before = await self._ended()
                with followed("claim to settled", whole_thread=True) as flow:
                    await self._agreet.aenqueue(name="b")
                    while await self._ended() == before:  # noqa: ASYNC110 - seen from outside
                        await asyncio.sleep(0.005)
                flows.append(flow)
        return least(flows[1:])

    async def dead_letters(self, count: int) -> list[int]:
        """Make jobs that can be retried."""
        handles = [await self._fail.aenqueue() for _ in range(count)]
        async with self.app.run():
            for handle in handles:
                await handle.wait_async(30)
        return [handle.id for handle in handles]

    def retry(self, ids: list[int]) -> Flow:
        """Retry by `app.admin`."""
        left = iter(ids)
        return self._warm("retry by app.admin", lambda: self.app.admin.jobs.retry([next(left)], BY))

    async def retry_over_http(self, ids: list[int]) -> Flow:
        """Retry by `POST /v1/jobs/{id}:retry`."""
        token = self.app.admin.tokens.create("flows", BY, scopes=["operate"])
        async with _serving(create(self.app)) as client:
            client.headers["Authorization"] = f"Bearer {token.secret}"
            left = iter(ids)

            async def send() -> httpx.Response:
                return await client.post(f"/v1/jobs/{next(left)}:retry")

            return await self._sent("retry over HTTP", send, 200)

    async def retry_by_dashboard(self, ids: list[int]) -> Flow:
        """Retry by the button of the dashboard, without the page that it leads to."""
        token = self.app.admin.tokens.create("flows", BY, scopes=["operate"])
        async with _serving(create(self.app)) as client:
            await client.post("/sign-in", data={"token": token.secret})
            [secret] = client.cookies.values()
            fields = {"mark": csrf_token(secret), "reason": "flows"}
            left = iter(ids)

            async def send() -> httpx.Response:
                return await client.post(f"/jobs/{next(left)}/retry", data=fields)

            return await self._sent("retry by the dashboard", send, 303)

    def retry_by_cli(self, ids: list[int]) -> Flow:
        """Retry by `tenure job retry`, which connects and checks the schema."""
        left = iter(ids)

        def command() -> None:
            words = ["job", "retry", str(next(left)), "--database-url", self._url]
            with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
                cli.run(words)

        return self._warm("retry by the command line", command)

    @staticmethod
    def _warm(name: str, call: Callable[[], object]) -> Flow:
        call()
        flows = []
        for _ in range(CALLS):
            with followed(name) as flow:
                call()
            flows.append(flow)
        return least(flows)

    @staticmethod
    async def _sent(name: str, send: Callable[[], Awaitable[httpx.Response]], status: int) -> Flow:
        flows = []
        for _ in range(1 + CALLS):
            with followed(name) as flow:
                answer = await send()
            if answer.status_code != status:
                raise RuntimeError(f"{name}: {answer.status_code} {answer.text[:400]}")
            flows.append(flow)
        return least(flows[1:])

    async def _ended(self) -> int:
        async with await psycopg.AsyncConnection.connect(self._url) as connection:
            [[count]] = await (await connection.execute(_ENDED)).fetchall()
            return int(count)


@contextlib.asynccontextmanager
async def _serving(api: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    transport: Any = httpx.ASGITransport(api)
    async with (
        api.router.lifespan_context(api),
        httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client,
    ):
        yield client


def _greet(name: str) -> str:
    return name


async def _agreet(name: str) -> str:
    return name


async def _fail() -> None:
    raise ValueError("to be retried")


async def _on_a_loop(flows: Flows) -> list[Flow]:
    each = 1 + CALLS
    ids = await flows.dead_letters(4 * each)
    parts = [ids[n : n + each] for n in range(0, len(ids), each)]
    return [
        await flows.claim(),
        await asyncio.to_thread(flows.retry, parts[0]),
        await flows.retry_over_http(parts[1]),
        await flows.retry_by_dashboard(parts[2]),
        await asyncio.to_thread(flows.retry_by_cli, parts[3]),
    ]


def follow() -> list[Flow]:
    """All flows, on a private server."""
    with Cluster(in_memory=True) as cluster:
        # The traces of the jobs that fail on purpose are not of interest.
        logging.getLogger("tenure").addHandler(logging.NullHandler())
        databases = Databases(cluster)
        flows = Flows(databases.create(databases.template("tenure", install)))
        enqueued = flows.enqueue()

        async def rest() -> list[Flow]:
            try:
                return await _on_a_loop(flows)
            finally:
                await flows.aclose()

        return [enqueued, *asyncio.run(rest())]


def main() -> int:
    """Print each flow with its files; those that are entered most often carry their count."""
    for flow in follow():
        print(flow)
        entered = Counter(
            here
            for before, here in zip(["", *flow.steps], flow.steps, strict=False)
            if here != before
        )
        for file in flow.files:
            print(f"    {file}" + (f" ×{entered[file]}" if entered[file] > 1 else ""))
    return 0


if __name__ == "__main__":
    sys.exit(main())
