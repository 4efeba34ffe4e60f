"""Mistakes in Python, made in memory: each patches the running process."""

from __future__ import annotations

import contextlib
import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self

# What a patch changes is imported when it is applied: programs of the last release load this too.
if TYPE_CHECKING:
    from datetime import timedelta

    from tenure._model.lease import ClaimedJob
    from tenure._rules.leasing import LeaseTimes
    from tenure._runtime.held_leases import HeldLease
    from tenure._runtime.renewer import Renewer
    from tenure._runtime.runtime import WorkerRuntime
    from tenure._services.rescuer import Rescuer
    from tenure._store.engine import ServiceConnection
    from tenure._store.postgres.settlement import SettlementQueries
    from tenure._store.steps import Op
    from tenure.task import Definition


def take_a_cancelled_wait_as_success() -> None:
    """The warning of a commit that stopped waiting for its standby is not looked at."""
    from tenure._store.postgres import sessions  # noqa: PLC0415 - see above

    sessions.is_unconfirmed = lambda diagnostic: False  # noqa: ARG005 - that is the mistake


def sweep_only_above_the_floor() -> None:
    """A sweep never goes back below its floor, which begins at the worker's start."""
    from tenure._services import rescuer  # noqa: PLC0415 - see above

    sound = rescuer.Rescuer.tick

    async def tick(self: Rescuer) -> int:
        self._from_zero_at = math.inf
        self._floor = self._floor or datetime.now(UTC) - self._lag
        return await sound(self)

    rescuer.Rescuer.tick = tick  # type: ignore[method-assign]  # that is what a patch is


def stop_renewing_to_drain() -> None:
    """Draining begins with an end to all renewals."""
    from tenure._runtime import renewer, runtime  # noqa: PLC0415 - see above

    sound = runtime.WorkerRuntime.drain

    async def nothing(self: Renewer) -> int:
        del self
        return 0

    async def drain(self: WorkerRuntime, grace: float) -> bool:
        renewer.Renewer.tick = nothing  # type: ignore[method-assign]  # that is what a patch is
        return await sound(self, grace)

    runtime.WorkerRuntime.drain = drain  # type: ignore[method-assign]  # that is what a patch is


def trust_without_an_answer() -> None:
    """A renewal that is not answered is taken for one that was made."""
    from tenure._clock import boottime  # noqa: PLC0415 - see above
    from tenure._runtime import renewer  # noqa: PLC0415 - see above

    sound = renewer.Renewer.tick

    async def tick(self: Renewer) -> int:
        sent_at = boottime()
        due = [held for held in self._held_leases if held.renew_at <= sent_at]
        try:
            return await sound(self)
        except Exception:
            for held in due:
                held.extend(sent_at)
            raise

    renewer.Renewer.tick = tick  # type: ignore[method-assign]  # that is what a patch is


def leave_out_the_margin() -> None:
    """A holder begins to stop when its lease ends, and not before."""
    from tenure._rules import leasing  # noqa: PLC0415 - see above

    def margin(ttl: timedelta, **_: object) -> timedelta:
        return ttl * 0

    leasing.margin = margin


def commit_whether_or_not_it_settled() -> None:
    """What the last statement of the job's transaction answers is not looked at."""
    from tenure._store.postgres import settlement  # noqa: PLC0415 - see above
    from tenure.errors import LeaseLost  # noqa: PLC0415 - see above

    sound = settlement.SettlementQueries.settle_within

    def settle_within(self: SettlementQueries, *words: Any, **named: Any) -> Op[None]:
        with contextlib.suppress(LeaseLost):
            yield from sound(self, *words, **named)

    settlement.SettlementQueries.settle_within = settle_within  # type: ignore[method-assign]  # as above


def begin_without_confirmation() -> None:
    """A job whose task fails on loss begins as any fresh job does."""
    from tenure._runtime import held_leases  # noqa: PLC0415 - see above

    sound = held_leases.HeldLease.__init__

    def make(
        self: HeldLease, claimed: ClaimedJob, task: Definition, terms: LeaseTimes, sent_at: float
    ) -> None:
        sound(self, claimed, task, terms, sent_at)
        self.confirm = claimed.confirm

    held_leases.HeldLease.__init__ = make  # type: ignore[method-assign]  # that is what a patch is


def forgive_what_has_returned() -> None:
    """A job whose handler has returned is never taken for what ended its process."""
    from tenure.worker import recovery  # noqa: PLC0415 - see above

    recovery._SHORTLY = 0.0  # noqa: SLF001 - that is what a patch is


def ignore_the_beat_at_a_deadline() -> None:
    """A job that passes a deadline held its process, whether or not the service thread moved."""
    from tenure.worker import recovery  # noqa: PLC0415 - see above

    recovery._RENEWAL = -1.0  # noqa: SLF001 - that is what a patch is


def claim_on_the_handlers_loop() -> None:
    """The answer to a claim waits for the loop that handlers can block."""
    from tenure._runtime import runtime  # noqa: PLC0415 - see above

    def on_this_loop(self: WorkerRuntime, name: str, **_deadline: object) -> ServiceConnection:
        return self._app.engine.service_connection(name)

    runtime.WorkerRuntime._thread_connection = on_this_loop  # type: ignore[method-assign, assignment]  # noqa: SLF001


def ignore_a_silent_service_thread() -> None:
    """However long a service thread is silent, its child is left alone."""
    from tenure.worker import child_process  # noqa: PLC0415 - see above

    def patience(shortest_lease: float) -> float:
        del shortest_lease
        return math.inf

    child_process.patience = patience
    vars(child_process)["patience"] = patience  # it has the function by its name


def wait_for_the_reader_of_the_log() -> None:
    """A line is written where it is logged, and waits until it can be."""
    from tenure import _log  # noqa: PLC0415 - see above

    def put(self: _log.LogWriter, line: str, *, own: bool) -> None:
        del own
        self._write(line)

    _log.LogWriter.put = put  # type: ignore[method-assign]  # that is what a patch is


def stop_renewing_before_handlers_end() -> None:
    """A worker over HTTP that stops ends its renewals first, and then waits for its handlers."""
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - see above

    from tenure.client import worker  # noqa: PLC0415 - see above

    made: list[worker.ClientRenewer] = []

    class Tracked(worker.ClientRenewer):
        def __enter__(self) -> Self:
            made.append(self)
            return super().__enter__()

    class Waiting(ThreadPoolExecutor):
        def __exit__(self, *_: object) -> None:
            made[-1].__exit__()
            super().__exit__(None, None, None)

    vars(worker).update(Renewer=Tracked, ThreadPoolExecutor=Waiting)
