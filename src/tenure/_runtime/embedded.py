"""Run a worker inside another program, with the same services and rules but no parent process.

Without a parent, nothing can kill a handler that ignores cancellation or blocks this process. The
handler's effects outside the database may continue after its lease has ended.
"""

import os
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from uuid import uuid4
from weakref import WeakKeyDictionary

from tenure._model.ids import WorkerId
from tenure._model.worker import WorkerState
from tenure._runtime import log_capture
from tenure._runtime.held_leases import HeldLease, StopReason
from tenure._runtime.host import WorkerHost, finish_loading
from tenure._runtime.runtime import RuntimeOptions, WorkerRuntime
from tenure._services.base import log, log_fields

_RUNNING: WeakKeyDictionary[WorkerHost, list[WorkerRuntime]] = WeakKeyDictionary()


@asynccontextmanager
async def inside(
    app: WorkerHost,
    *,
    queues: Sequence[str] | None,
    slots: int,
    lease: timedelta | None,
    grace: float,
    name: str | None,
    schedules: bool,
) -> AsyncIterator[None]:
    finish_loading(app)
    await app.engine.arun(app.engine.store.schema.check())
    options = RuntimeOptions(
        worker=WorkerId(uuid4()),
        name=name or f"{socket.gethostname()}-{os.getpid()}",
        queues=queues or app.tasks.queues,
        slots=slots,
        lease=lease,
        schedules=schedules,
    )
    runtime = WorkerRuntime(app, options, on_unstoppable=_report_unstoppable)
    running = _RUNNING.setdefault(app, [])
    with log_capture.capture_logs():
        runtime.start()
        running.append(runtime)
        try:
            yield
        finally:
            running.remove(runtime)
            await runtime.drain(grace)
            await runtime.stop()


def presences(app: WorkerHost) -> Sequence[WorkerState]:
    """Return the states of this app's workers here: offline once the service thread has ended."""
    return [runtime.presence for runtime in _RUNNING.get(app, ())]


def _report_unstoppable(held: HeldLease, why: StopReason) -> None:
    log.error(
        "job %s did not stop (%s), and no parent process can end it",
        held.job.id,
        why.value,
        extra=log_fields(held.job),
    )
