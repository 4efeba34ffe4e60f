"""Use Tenure in a Starlette or FastAPI program, with a lifespan and health checks.

To enqueue in a request's transaction, call `task.using(connection=session)`.
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
    lease: float | timedelta | None = None,
    grace: float | timedelta | None = None,
    name: str | None = None,
    schedules: bool | None = None,
) -> Callable[[object], AbstractAsyncContextManager[None]]:
    """Create a lifespan to pass as `lifespan=`, or to enter from your own lifespan.

    The program starts only if the database responds and its schema is compatible. On shutdown, the
    worker stops gracefully and the connections are closed.

    Args:
        app: The app.
        work: Run a worker in this process, as `app.run` does (default: False).
        queues: The queues to serve (default: the tasks' queues, and `"default"`).
        concurrency: How many jobs run concurrently (default: 10).
        lease: The lease of each job that the worker claims (default: the job's, task's, queue's
            or installation's).
        grace: How long running jobs have to finish on shutdown (default: 25 s).
        name: The worker's name, as shown in lists (default: host and pid).
        schedules: Whether to run schedules too (default: True).

    Returns:
        The lifespan.

    Raises:
        InvalidValue: A worker option is given without `work=True`.
    """
    worker_options = (queues, concurrency, lease, grace, name, schedules)
    if not work and any(option is not None for option in worker_options):
        raise InvalidValue(
            "queues, concurrency, lease, grace, name and schedules must come with work=True; add "
            "it, or remove them"
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
                        lease=lease,
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
    """Create an application to mount, with the health checks `/live` and `/ready`.

    Both return 200 or 503. `/live` doesn't query the database. If it returns 503, the
    process should be restarted. `/ready` queries the database at most once a second, and waits up
    to 2 s.

    Args:
        app: The app.

    Returns:
        The application.
    """
    readiness = _Readiness(app)

    async def live(_request: Request) -> JSONResponse:
        return _answer(_worker(app))

    async def ready(_request: Request) -> JSONResponse:
        return _answer({**await readiness.ask(), **_worker(app)})

    return Router([Route("/live", live), Route("/ready", ready)])


class _Readiness:
    """Checks whether the database is usable. Concurrent requests share one query."""

    def __init__(self, app: Tenure) -> None:
        self._app = app
        self._seen: dict[str, str] = {}
        self._logged: set[str] = set()
        self._fresh_until = 0.0
        self._looking: asyncio.Task[dict[str, str]] | None = None

    async def ask(self) -> dict[str, str]:
        """Return the last result if it's fresh. Otherwise, query again within a deadline.

        A slow query is left running, because canceling it would mean waiting for the server again.
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
        """Keep the result. Log each kind of problem only once until all are resolved.

        The response doesn't include the reason.
        """
        kind = " ".join(seen.values())
        if reason is not None and kind not in self._logged:
            self._logged.add(kind)
            log.warning("health: not ready, %s", reason)
        elif reason is None and self._logged:
            self._logged.clear()
            log.info("health: ready again")
        self._seen = seen
        return seen


def _worker(app: Tenure) -> dict[str, str]:
    """Return the state of this process's worker, if it has one.

    If an operator is draining the worker, the program can still serve requests. If the worker's
    service thread has died, the process must be restarted.
    """
    states = presences(app)
    if not states:
        return {}
    if WorkerState.OFFLINE in states:
        return {"worker": "failed"}
    return {"worker": "draining" if WorkerState.DRAINING in states else "active"}


def _answer(parts: dict[str, str]) -> JSONResponse:
    healthy = {"ok", "active", "draining"}.issuperset(parts.values())
    return JSONResponse(
        {"status": "ok" if healthy else "unavailable", **parts},
        status_code=200 if healthy else 503,
        headers={"cache-control": "no-store"},
    )
