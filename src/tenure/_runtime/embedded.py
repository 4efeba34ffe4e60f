"""Run a worker inside another program, with the same services and rules but no parent process.

Without a parent, nothing can kill a handler that ignores cancellation or blocks this process. The
handler's effects outside the database may continue after its lease has ended.

An async program runs the worker on its own event loop. A sync program runs it on a thread, which
has an event loop of its own.
"""

import asyncio
import os
import socket
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
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


# Stopping the service threads and delivering the last events takes this long at most.
_STOP_WITHIN = 30.0
# After the worker has stopped, only a handler that ignores cancellation keeps its thread alive.
_END_WITHIN = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedOptions:
    queues: Sequence[str] | None
    slots: int
    lease: timedelta | None
    grace: float
    name: str | None
    schedules: bool


def inside(app: WorkerHost, options: EmbeddedOptions) -> AbstractAsyncContextManager[None]:
    """Run a worker on the caller's event loop."""
    finish_loading(app)
    return _working(app, options)


@asynccontextmanager
async def _working(app: WorkerHost, options: EmbeddedOptions) -> AsyncIterator[None]:
    await app.engine.arun(app.engine.store.schema.check())
    runtime = WorkerRuntime(
        app,
        RuntimeOptions(
            worker=WorkerId(uuid4()),
            name=options.name or f"{socket.gethostname()}-{os.getpid()}",
            queues=options.queues or app.tasks.queues,
            slots=options.slots,
            lease=options.lease,
            schedules=options.schedules,
        ),
        on_unstoppable=_report_unstoppable,
    )
    running = _RUNNING.setdefault(app, [])
    with log_capture.capture_logs():
        runtime.start()
        running.append(runtime)
        try:
            yield
        finally:
            running.remove(runtime)
            await runtime.drain(options.grace)
            await runtime.stop()


@contextmanager
def inside_thread(app: WorkerHost, options: EmbeddedOptions) -> Iterator[None]:
    """Run a worker on a thread of its own."""
    # Here, not on the thread: if the caller is still importing a module, the thread would wait for
    # that module's import lock, and the caller for the thread.
    finish_loading(app)
    thread = WorkerThread(app, options)
    try:
        thread.start()
        yield
    finally:
        thread.stop()


class WorkerThread:
    def __init__(self, app: WorkerHost, options: EmbeddedOptions) -> None:
        self._app = app
        self._options = options
        self._pid = os.getpid()
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._ready = threading.Event()
        self._stopped = threading.Event()
        self._error: BaseException | None = None
        # A daemon, so that a program can end although it never left the block. Python waits for
        # other threads before it runs the program's exit handlers.
        self._thread = threading.Thread(target=self._main, name="tenure-worker", daemon=True)

    def start(self) -> None:
        """Return once the worker has started. Raise its error if it can't start."""
        try:
            self._thread.start()
        except RuntimeError:  # the system has no thread left
            self._stopped.set()
            self._loop.close()
            raise
        self._ready.wait()
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        """Shut the worker down gracefully. A forked copy of the program returns immediately."""
        if self._pid != os.getpid():
            return
        with suppress(RuntimeError):  # the thread and its loop have ended
            self._loop.call_soon_threadsafe(self._stop.set)
        if not self._stopped.wait(self._options.grace + _STOP_WITHIN):
            log.error("worker thread: a handler blocks its event loop, leaving it running")
            return
        self._thread.join(_END_WITHIN)

    def _main(self) -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                runner.run(self._run())
        except BaseException as error:  # noqa: BLE001 - raised in the caller's thread, or logged
            if self._ready.is_set():
                log.exception("the worker thread died")
            self._error = error
        finally:
            self._stopped.set()
            self._ready.set()

    async def _run(self) -> None:
        try:
            async with _working(self._app, self._options):
                self._ready.set()
                await self._stop.wait()
        finally:
            await self._app.engine.aclose()
            # The loop itself may not end: it waits for handlers that ignore cancellation.
            self._stopped.set()


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
