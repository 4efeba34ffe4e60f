"""The child: the process that runs handlers.

The parent starts it and passes its options as JSON.
"""

import asyncio
import gc
import json
import os
import resource
import signal
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import timedelta
from functools import partial
from typing import NoReturn
from uuid import UUID

from tenure import _log
from tenure._clock import boottime
from tenure._model.ids import WorkerId
from tenure._runtime import log_capture
from tenure._runtime.counters import SharedCounters
from tenure._runtime.events import EventEmitter
from tenure._runtime.held_leases import HeldLease, StopReason
from tenure._runtime.lease_board import LeaseBoard
from tenure._runtime.runtime import RuntimeOptions, WorkerRuntime
from tenure._runtime.startup import package_version, redact_url, run_unless_stopped, wait_for_schema
from tenure._services.base import log, log_fields
from tenure.app import Tenure
from tenure.errors import SchemaError, StoreError, TenureError
from tenure.kinds.shell import guard_process
from tenure.worker.ipc import ParentMessages, RecoveredJob, RecoveredJobs
from tenure.worker.loader import describe_load_error, load
from tenure.worker.log_format import configure_logging
from tenure.worker.processes import die_with_parent, end_copies, set_close_on_exec

_REFUSED = 78
_BEAT = 0.5
_LAST_LINES = 1.0
_LAST_LINES_DOOMED = 0.2
_USUAL = 700, 10, 10
_HANDLER = "from tenure.worker.processes import main; main()"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildOptions:
    target: str
    parent: int
    worker: str
    name: str
    queues: list[str] | None
    kinds: list[str]
    slots: int
    lease: float | None
    places: int
    board_fd: int
    channel_fd: int
    sheet_fd: int | None
    # The guards of this process's commands lock it.
    guards_fd: int
    grace: float
    until_empty: bool
    schedules: bool
    processes: int
    is_first: bool
    log_successes: bool
    log_level: str
    log_format: str

    def to_json(self) -> str:
        return json.dumps(asdict(self))


class Child:
    def __init__(self, app: Tenure, options: ChildOptions, channel: socket.socket) -> None:
        self._app = app
        self._options = options
        self._channel = channel
        self._draining = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Run jobs until told to drain, then drain and exit."""
        options = self._options
        board = LeaseBoard(options.board_fd, places=options.places)
        runtime_options = RuntimeOptions(
            worker=WorkerId(UUID(options.worker)),
            name=options.name,
            queues=options.queues or self._app.tasks.queues,
            slots=options.slots,
            lease=None if options.lease is None else timedelta(seconds=options.lease),
            board=board,
            sheet=None if options.sheet_fd is None else SharedCounters(options.sheet_fd),
            handler=[
                *(sys.executable, "-c", _HANDLER),
                *(options.target, options.log_level, options.log_format),
            ],
            schedules=options.schedules,
            log_successes=options.log_successes,
        )
        loop = asyncio.get_running_loop()
        end_copies(loop)
        loop.add_signal_handler(signal.SIGTERM, self._drain_by_signal)
        with _heartbeats(board):
            await run_unless_stopped(self._draining, wait_for_schema(self._app))
        runtime = WorkerRuntime(
            self._app,
            runtime_options,
            on_unstoppable=self._on_unstoppable,
            on_drain=self._draining.set,
        )
        runtime.start()
        if options.is_first and not self._draining.is_set():
            self._log_started(runtime_options.queues)
        on_recovered = partial(self._deliver_recovered, runtime.emitter)
        loop.add_reader(
            self._channel, ParentMessages(self._channel, on_recovered, runtime.run_scheduler)
        )
        if options.until_empty:
            emptied = asyncio.create_task(runtime.until_empty())
            emptied.add_done_callback(lambda _: self._draining.set())
        await self._draining.wait()
        ended = await runtime.drain(options.grace)
        if ended:
            await runtime.stop()
        # Exit here: asyncio would wait for a handler that never ends.
        self._leave("drained" if ended else "overran")

    def _drain_by_signal(self) -> None:
        """Drain and notify the parent, which may not have sent the signal."""
        if not self._draining.is_set():
            _send(self._channel, draining="signal")
        self._draining.set()

    def _log_started(self, queues: Sequence[str]) -> None:
        options, engine = self._options, self._app.engine
        log.info(
            "worker %s started: version=%s, app=%s, database=%s, schema=%s, queues=%s, "
            "processes=%d, concurrency=%d, schedules=%s",
            options.name.rpartition("/")[0],
            package_version(),
            options.target,
            redact_url(engine.url),
            engine.schema,
            ",".join(queues),
            options.processes,
            options.slots,
            "yes" if options.schedules else "no",
        )

    def _deliver_recovered(self, emitter: EventEmitter, news: RecoveredJobs) -> None:
        task = asyncio.create_task(self._deliver(emitter, news.ended))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _deliver(self, emitter: EventEmitter, ends: Sequence[RecoveredJob]) -> None:
        engine = self._app.engine
        for end in ends:
            try:
                job = await engine.arun(engine.store.jobs.get(end.job_id))
            except StoreError as error:
                log.warning(
                    "job %s: event not delivered to listeners: %s",
                    end.job_id,
                    error,
                    extra={"job": end.job_id, "attempt": end.attempt},
                )
                continue
            if job is not None:
                emitter.ended(
                    job, end.state, end.settlement, reason=end.reason, attempt=end.attempt
                )

    def _on_unstoppable(self, held: HeldLease, why: StopReason) -> None:
        """If the lease is at risk, exit now. After a timeout, let the parent replace this child."""
        log.error(
            "job %s did not stop (%s), ending this process",
            held.job.id,
            why.value,
            extra=log_fields(held.job),
        )
        if why is StopReason.LEASE:
            self._leave("doomed")

    def _leave(self, how: str) -> None:
        """Exit and send the parent the reason, because an exit code could come from a handler."""
        _send(self._channel, left=how)
        # Blocked logging must not keep the leases held.
        _log.shut_down(_LAST_LINES_DOOMED if how == "doomed" else _LAST_LINES)
        os._exit(0)


def main() -> None:
    options = ChildOptions(**json.loads(sys.argv[1]))
    die_with_parent(options.parent)
    set_close_on_exec(options.board_fd, options.channel_fd, options.sheet_fd, options.guards_fd)
    guard_process.set_lock_file(options.guards_fd)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    channel = socket.socket(fileno=options.channel_fd)
    configure_logging(options.log_level, options.log_format)
    try:
        app = load(options.target)
        app.serve_kinds(options.kinds)
        engine = app.engine
    except Exception as error:  # noqa: BLE001 - reported to the user
        _refuse(channel, error)
    _tune_gc()
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    listens = bool(app.hooks.listeners)
    _send(channel, url=engine.url, schema=engine.schema, listens=listens, files=files)
    try:
        with log_capture.capture_logs():
            # Don't use asyncio.run. It would cancel all handlers and wait for them, forever if one
            # ignores the cancellation, while the service thread keeps renewing their leases.
            asyncio.Runner().run(Child(app, options, channel).run())
    except SchemaError as error:
        _refuse(channel, error)
    except BaseException as error:  # noqa: BLE001 - a handler broke the loop
        _exit_broken(error)


@contextmanager
def _heartbeats(board: LeaseBoard) -> Iterator[None]:
    """Send the event loop's heartbeats inside the block, until the watchdog takes over."""

    async def heartbeat() -> None:
        while True:
            board.record_loop_heartbeat(boottime())
            await asyncio.sleep(_BEAT)

    heartbeats = asyncio.create_task(heartbeat())
    try:
        yield
    finally:
        heartbeats.cancel()


def _tune_gc() -> None:
    # Garbage collection took a quarter of the runtime of no-op jobs.
    gc.collect()
    gc.freeze()
    if gc.get_threshold() == _USUAL:
        gc.set_threshold(10_000, *_USUAL[1:])


def _refuse(channel: socket.socket, error: Exception) -> NoReturn:
    _send(channel, refused=_three_lines(error))
    _log.flush(_LAST_LINES)
    os._exit(_REFUSED)


def _exit_broken(error: BaseException) -> NoReturn:
    """Exit immediately because the event loop ended. The parent treats it as a crash."""
    log.error("event loop ended unexpectedly, ending this process", exc_info=error)
    _log.flush(_LAST_LINES_DOOMED)
    os._exit(1)


def _send(channel: socket.socket, **message: str | int) -> None:
    channel.sendall(json.dumps(message).encode() + b"\n")


def _three_lines(error: Exception) -> str:
    if isinstance(error, TenureError):
        what, _, remedy = str(error).rpartition("; ")
        return _lines("the worker cannot start", what or remedy, remedy)
    todo = "fix the error, then restart or reload the worker (`tenure dev` reloads by itself)"
    return _lines("the worker cannot load the app", describe_load_error(error), todo)


def _lines(what: str, why: str, todo: str) -> str:
    return f"error: {what}\nwhy:   {why}\ndo:    {todo}"
