"""Working inside another program: the same services and rules, without a parent.

Nobody ends a handler that neither heeds its cancel nor lets this process run, so the promise
that other effects are stopped before the lease ends does not hold here.
"""

import os
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from uuid import uuid4
from weakref import WeakKeyDictionary

from tenure._executors import logs
from tenure._model.ids import WorkerId
from tenure._model.worker import Presence
from tenure._services.base import about, log
from tenure._services.holdings import Held, Why
from tenure.app import Tenure
from tenure.worker.core import Core, Shape
from tenure.worker.loading import complete

_RUNNING: WeakKeyDictionary[Tenure, list[Core]] = WeakKeyDictionary()


@asynccontextmanager
async def inside(
    app: Tenure,
    *,
    queues: Sequence[str] | None,
    slots: int,
    grace: float,
    name: str | None,
    schedules: bool,
) -> AsyncIterator[None]:
    """Work on this event loop as long as the block lasts; then drain."""
    complete(app)
    await app.engine.arun(app.engine.check_schema())
    shape = Shape(
        worker=WorkerId(uuid4()),
        name=name or f"{socket.gethostname()}-{os.getpid()}",
        queues=queues or app.tasks.queues,
        slots=slots,
        schedules=schedules,
    )
    core = Core(app, shape, on_doomed=_doomed)
    running = _RUNNING.setdefault(app, [])
    with logs.excerpts():
        core.start()
        running.append(core)
        try:
            yield
        finally:
            running.remove(core)
            await core.drain(grace)
            await core.stop()


def presences(app: Tenure) -> Sequence[Presence]:
    """How the workers that run here for this app fare; offline is one that holds no lease any
    more because its keeper has ended."""
    return [core.presence for core in _RUNNING.get(app, ())]


def _doomed(held: Held, why: Why) -> None:
    log.error(
        "job %s does not stop (%s), and there is no parent to end it here",
        held.job.id,
        why.value,
        extra=about(held.job),
    )
