"""The child: the process that runs handlers. Started by the parent, with its orders as JSON."""

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
    """What the parent tells a child at its start."""

    target: str
    parent: int
    worker: str
    name: str
    queues: list[str] | None
    slots: int
    places: int
    board_fd: int
    channel_fd: int
    sheet_fd: int | None
    grace: float
    until_empty: bool
    schedules: bool
    processes: int
    is_first: bool
    tells: bool
    log_level: str
    log_format: str

    def to_json(self) -> str:
        """The orders as one argument of the child's command."""
        return json.dumps(asdict(self))


class Child:
    """One run of a child, from start to drained."""

    def __init__(self, app: Tenure, orders: ChildOptions, channel: socket.socket) -> None:
        self._app = app
        self._orders = orders
        self._channel = channel
        self._draining = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Work until told to drain, and leave; also when a handler did not end in time."""
        orders = self._orders
        board = LeaseBoard(orders.board_fd, places=orders.places)
        runtime_options = RuntimeOptions(
            worker=WorkerId(UUID(orders.worker)),
            name=orders.name,
            queues=orders.queues or self._app.tasks.queues,
            slots=orders.slots,
            board=board,
            sheet=None if orders.sheet_fd is None else SharedCounters(orders.sheet_fd),
            handler=[
                *(sys.executable, "-c", _HANDLER),
                *(orders.target, orders.log_level, orders.log_format),
            ],
            schedules=orders.schedules,
            tells=orders.tells,
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
        if orders.is_first and not self._draining.is_set():
            self._greet(runtime_options.queues)
        on_recovered = partial(self._deliver_recovered, runtime.emitter)
        loop.add_reader(
            self._channel, ParentMessages(self._channel, on_recovered, runtime.run_scheduler)
        )
        if orders.until_empty:
            emptied = asyncio.create_task(runtime.until_empty())
            emptied.add_done_callback(lambda _: self._draining.set())
        await self._draining.wait()
        ended = await runtime.drain(orders.grace)
        if ended:
            await runtime.stop()
        # From here: asyncio's own way out would wait for a handler that does not end.
        self._leave("drained" if ended else "overran")

    def _drain_by_signal(self) -> None:
        """Drain, and tell the parent, which may not have sent the signal."""
        if not self._draining.is_set():
            _say(self._channel, draining="signal")
        self._draining.set()

    def _greet(self, queues: Sequence[str]) -> None:
        """Say once for all of the worker that it works, and at what."""
        orders, engine = self._orders, self._app.engine
        log.info(
            "worker %s works: tenure %s, app %s, database %s, schema %s, queues %s, %d x %d slots, "
            "schedules %s",
            orders.name.rpartition("/")[0],
            package_version(),
            orders.target,
            redact_url(engine.url),
            engine.schema,
            ", ".join(queues),
            orders.processes,
            orders.slots,
            "yes" if orders.schedules else "no",
        )

    def _deliver_recovered(self, emitter: EventEmitter, news: RecoveredJobs) -> None:
        """The parent has ended this for a child that died."""
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
                    "the end of job %s is left untold to listeners: %s",
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
        """A handler did not heed: for its lease's sake end now; for its timeout, the parent sees
        it on the board and retires this child."""
        log.error(
            "job %s does not stop (%s); this process will end",
            held.job.id,
            why.value,
            extra=log_fields(held.job),
        )
        if why is StopReason.LEASE:
            self._leave("doomed")

    def _leave(self, how: str) -> None:
        """End this process, with a word to the parent: an exit code could be the handler's own."""
        _say(self._channel, left=how)
        # A log that takes nothing more must not keep the leases.
        _log.shut_down(_LAST_LINES_DOOMED if how == "doomed" else _LAST_LINES)
        os._exit(0)


def main() -> None:
    orders = ChildOptions(**json.loads(sys.argv[1]))
    die_with_parent(orders.parent)
    set_close_on_exec(orders.board_fd, orders.channel_fd, orders.sheet_fd)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    channel = socket.socket(fileno=orders.channel_fd)
    configure_logging(orders.log_level, orders.log_format)
    try:
        app = load(orders.target)
        engine = app.engine
    except Exception as error:  # noqa: BLE001 - whatever the user's module does, it is told
        _refuse(channel, error)
    _spare_the_collector()
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    listens = bool(app.hooks.listeners)
    _say(channel, url=engine.url, schema=engine.schema, listens=listens, files=files)
    try:
        with log_capture.capture_logs():
            # Not by asyncio.run: it would cancel all handlers and wait for them, for ever where one
            # does not heed that, while the service thread renews their leases.
            asyncio.Runner().run(Child(app, orders, channel).run())
    except SchemaError as error:
        _refuse(channel, error)
    except BaseException as error:  # noqa: BLE001 - whatever a handler did to the loop
        _break_off(error)


@contextmanager
def _heartbeats(board: LeaseBoard) -> Iterator[None]:
    """Beat for the event loop as long as this lasts: before the watcher does."""

    async def heartbeat() -> None:
        while True:
            board.record_loop_heartbeat(boottime())
            await asyncio.sleep(_BEAT)

    heartbeats = asyncio.create_task(heartbeat())
    try:
        yield
    finally:
        heartbeats.cancel()


def _spare_the_collector() -> None:
    """Look for garbage less often, unless the app has said how often: what a job leaves is freed at
    once, and looking took a quarter of the time of jobs that do nothing. What is loaded stays."""
    gc.collect()
    gc.freeze()
    if gc.get_threshold() == _USUAL:
        gc.set_threshold(10_000, *_USUAL[1:])


def _refuse(channel: socket.socket, error: Exception) -> NoReturn:
    """End this process, and tell the parent why it could not start."""
    _say(channel, refused=_three_lines(error))
    _log.flush(_LAST_LINES)
    os._exit(_REFUSED)


def _break_off(error: BaseException) -> NoReturn:
    """End this process at once: its event loop has ended under its handlers. Without a word to the
    parent, which settles what ran here as after any other crash."""
    log.error("the event loop has ended; this process ends", exc_info=error)
    _log.flush(_LAST_LINES_DOOMED)
    os._exit(1)


def _say(channel: socket.socket, **message: str | int) -> None:
    channel.sendall(json.dumps(message).encode() + b"\n")


def _three_lines(error: Exception) -> str:
    """What, why, what to do; with the place, where it is the user's code that failed."""
    if isinstance(error, TenureError):
        what, _, remedy = str(error).rpartition("; ")
        return _lines("the worker cannot start", what or remedy, remedy)
    todo = "mend that; then start or reload the worker, which `tenure dev` does by itself"
    return _lines("the worker cannot load the app", describe_load_error(error), todo)


def _lines(what: str, why: str, todo: str) -> str:
    return f"error: {what}\nwhy:   {why}\ndo:    {todo}"
