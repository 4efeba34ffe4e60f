"""Tenure inside a Starlette or FastAPI program: from its start to its end, and how it fares.

Enqueueing needs nothing from here: `task.using(connection=session)` joins the request's
transaction as it joins any other.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from datetime import timedelta
from time import monotonic

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route, Router

from tenure._runtime.embedded import presences
from tenure.app import Tenure
from tenure.errors import InvalidValue, TenureError, Unreachable
from tenure.types import WorkerState

__all__ = ["health", "lifespan"]

log: logging.Logger = logging.getLogger("tenure")
_DEADLINE = 2.0
_FRESH = 1.0


def lifespan(
    app: Tenure,
    *,
    work: bool = False,
    queues: Sequence[str] | None = None,
    concurrency: int | None = None,
    grace: float | timedelta | None = None,
    name: str | None = None,
    schedules: bool | None = None,
) -> Callable[[object], AbstractAsyncContextManager[None]]:
    """What to pass as `lifespan=`, or to enter in a lifespan of your own.

    The program does not start unless the database answers and its schema fits. With `work`, a
    worker runs in this process by `app.run`, whose options the rest are. At the end it drains,
    and the connections are closed.
    """
    worker_options = (queues, concurrency, grace, name, schedules)
    if not work and any(option is not None for option in worker_options):
        raise InvalidValue(
            "queues, concurrency, grace, name and schedules are a worker's: add work=True, or "
            "leave them out"
        )

    @asynccontextmanager
    async def around(_program: object, /) -> AsyncIterator[None]:
        try:
            async with AsyncExitStack() as until_the_end:
                await app.engine.arun(app.engine.store.schema.check())
                if work:
                    worker = app.run(
                        queues=queues,
                        concurrency=concurrency,
                        grace=grace,
                        name=name,
                        schedules=schedules,
                    )
                    await until_the_end.enter_async_context(worker)
                yield
        finally:
            await app.aclose()
            await asyncio.to_thread(app.close)

    return around


def health(app: Tenure) -> Router:
    """An application to mount, with two routes: `/live` and `/ready`.

    Each answers 200 or 503. Live asks nothing of the database: 503 says that only a new process
    will help. Ready asks it, at most once a second however often it is called, and waits for
    two seconds at the most.
    """
    readiness = _Readiness(app)

    async def live(_request: Request) -> JSONResponse:
        return _answer(_worker(app))

    async def ready(_request: Request) -> JSONResponse:
        return _answer({**await readiness.ask(), **_worker(app)})

    return Router([Route("/live", live), Route("/ready", ready)])


class _Readiness:
    """Whether the database can be worked with. One look at a time, shared by all who ask."""

    def __init__(self, app: Tenure) -> None:
        self._app = app
        self._seen: dict[str, str] = {}
        self._told: set[str] = set()
        self._fresh_until = 0.0
        self._looking: asyncio.Task[dict[str, str]] | None = None

    async def ask(self) -> dict[str, str]:
        """What the last look saw, if it is fresh; else what the next one sees, within a deadline.

        A look that takes longer goes on: to cancel a statement is to wait for its server again.
        """
        if monotonic() < self._fresh_until:
            return self._seen
        looking = self._looking
        if looking is None or looking.done() or looking.get_loop() != asyncio.get_running_loop():
            looking = self._looking = asyncio.create_task(self._look(), name="tenure health")
        done, _ = await asyncio.wait({looking}, timeout=_DEADLINE)
        if not done:
            return self._saw({"database": "slow"}, f"no answer within {_DEADLINE:g} s")
        return looking.result()

    async def _look(self) -> dict[str, str]:
        try:
            schema = await self._app.admin.schema.astatus()
        except TenureError as error:
            how = "unreachable" if isinstance(error, Unreachable) else "refusing"
            seen = self._saw({"database": how}, error)
        else:
            problem = schema.problem
            seen = self._saw({"database": "ok", "schema": "misfit" if problem else "ok"}, problem)
        self._fresh_until = monotonic() + _FRESH
        return seen

    def _saw(self, seen: dict[str, str], reason: object) -> dict[str, str]:
        """Keep it, and log the reason, which the answer does not tell: each kind of trouble once,
        until it is over, however often it is seen."""
        kind = " ".join(seen.values())
        if reason is not None and kind not in self._told:
            self._told.add(kind)
            log.warning("health: not ready, %s", reason)
        elif reason is None and self._told:
            self._told.clear()
            log.info("health: ready again")
        self._seen = seen
        return seen


def _worker(app: Tenure) -> dict[str, str]:
    """How the worker of this process fares, if there is one. To drain is an operator's wish, and
    the program can still serve; without its service thread it can only be replaced."""
    states = presences(app)
    if not states:
        return {}
    if WorkerState.OFFLINE in states:
        return {"worker": "failed"}
    return {"worker": "draining" if WorkerState.DRAINING in states else "active"}


def _answer(parts: dict[str, str]) -> JSONResponse:
    well = {"ok", "active", "draining"}.issuperset(parts.values())
    return JSONResponse(
        {"status": "ok" if well else "unavailable", **parts},
        status_code=200 if well else 503,
        headers={"cache-control": "no-store"},
    )
