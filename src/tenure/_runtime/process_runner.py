"""Run jobs inside a handler's process, one at a time.

The main thread runs the handlers, and another thread reads messages from the worker's child.
"""

import asyncio
import os
import queue
import socket
import threading
from contextvars import Context
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from tenure import _log
from tenure._clock import boottime
from tenure._hooks.middleware import Hooks
from tenure._model.job import JobRow
from tenure._model.lease import Lease
from tenure._registry import Registry
from tenure._runtime import execution, log_capture, process_protocol
from tenure._runtime.execution import HandlerCall
from tenure._runtime.held_leases import StopReason
from tenure._runtime.os_process import limited
from tenure._runtime.thread_interrupt import raise_into, take_back
from tenure._store.engine import Engine
from tenure.errors import Stopped
from tenure.job import CURRENT, LeaseState
from tenure.task import Definition, time_limit

if TYPE_CHECKING:
    from tenure._model.outcome import Outcome


_LAST_LINES = 1.0


class HandlerRunner:
    def __init__(
        self, tasks: Registry, engine: Engine, hooks: Hooks, channel: socket.socket
    ) -> None:
        self._tasks = tasks
        self._engine = engine
        self._hooks = hooks
        self._channel = channel
        self._pid = os.getpid()
        self._jobs: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._why: StopReason | None = None
        self._lease_state: LeaseState | None = None
        self._cancel: Any = None

    def run(self) -> None:
        self._send({"ready": True})
        threading.Thread(target=self._read, daemon=True).start()
        while True:
            row, lease = process_protocol.read_run(self._jobs.get())
            # A new context, so one job's variables don't leak into the next.
            ended = Context().run(self._handle, row, lease)
            if os.getpid() != self._pid:
                # A forked copy of the process returned from the handler, but doesn't own the job.
                os._exit(0)
            # The child may kill this process as soon as it gets this.
            _log.flush(_LAST_LINES)
            self._send(ended)

    def _read(self) -> None:
        """Read jobs, stops and cancels; exit when the child is gone."""
        with self._channel.makefile("rb") as lines:
            for line in lines:
                message = process_protocol.decode(line)
                if "run" in message:
                    self._why = None
                    self._jobs.put(message)
                elif "stop" in message:
                    self._stop(StopReason[message["stop"]])
                elif self._lease_state is not None:
                    self._lease_state.cancel_requested = True
        os._exit(0)

    def _stop(self, why: StopReason) -> None:
        with self._lock:
            self._why = why
            if self._lease_state is not None:
                self._lease_state.lost = self._lease_state.lost or why is StopReason.LEASE
            if self._cancel is not None:
                self._cancel()

    def _handle(self, row: JobRow, lease: Lease) -> dict[str, Any]:
        task = self._tasks[row.task]
        lease_state = LeaseState(lease, extended=self._extended)
        limit = time_limit(task, row.meta)
        if limit is not None:
            lease_state.timeout_at = boottime() + limit.total_seconds()
        call: HandlerCall | None = None
        outcome: Outcome
        try:
            call = HandlerCall(task, row, lease_state, self._engine, self._hooks)
            CURRENT.set(call.handle)
            log_capture.CURRENT.set(call.excerpt)
            with limited(task.memory):
                result = self._call(call, task, lease_state)
            outcome = execution.fit_to_send(execution.outcome_of_return(result))
        except BaseException as error:  # noqa: BLE001 - anything can end a handler
            outcome = execution.outcome_of_exception(error, task, self._why, limit)
        return process_protocol.ended(outcome, call.excerpt.text() if call else None, lease_state)

    def _extended(self, sent_at: float, extend: timedelta | None) -> None:
        self._send({"extended": sent_at, "extend": extend and extend.total_seconds()})

    def _call(self, call: HandlerCall, task: Definition, lease_state: LeaseState) -> object:
        if task.is_async:
            return asyncio.run(self._acall(call, lease_state))
        thread = threading.get_ident()
        self._enter(lease_state, lambda: raise_into(thread))
        try:
            return call()
        finally:
            self._leave()
            take_back(thread)

    async def _acall(self, call: HandlerCall, lease_state: LeaseState) -> object:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        if task is not None:
            self._enter(lease_state, lambda: loop.call_soon_threadsafe(task.cancel))
        try:
            return await call()
        finally:
            self._leave()
            await self._engine.aclose()

    def _enter(self, lease_state: LeaseState, cancel: Any) -> None:
        with self._lock:
            self._lease_state, self._cancel = lease_state, cancel
        if self._why is not None:
            raise Stopped(self._why.value)

    def _leave(self) -> None:
        with self._lock:
            self._lease_state = self._cancel = None

    def _send(self, message: dict[str, Any]) -> None:
        if os.getpid() == self._pid:
            self._channel.sendall(process_protocol.encode(message))
