"""Settle a dead child's leases, depending on how it ended."""

import asyncio
import math
import signal
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import compress
from typing import TYPE_CHECKING

from tenure import _wiring
from tenure._clock import boottime
from tenure._model.attempt import AttemptOutcome
from tenure._model.ids import WorkerId
from tenure._model.lease import SettleResult, SettleStatus
from tenure._model.outcome import Loss, Lost, Outcome, Released, SettleRequest
from tenure._model.worker import WorkerState
from tenure._rules import formatting, lifecycle
from tenure._runtime import execution
from tenure._runtime.held_leases import StopReason
from tenure._runtime.lease_board import NOT_STARTED_PHASES, BoardEntry, Phase
from tenure._services.base import log
from tenure.config import DEFAULTS
from tenure.errors import Error, StoreError
from tenure.worker.ipc import RecoveredJob, RecoveredJobs

if TYPE_CHECKING:
    from tenure._store.engine import Engine, ServiceConnection


# Why the parent kills a child, for the log.
KILLED = {
    "lease": "held a lease past its deadline",
    "grace": "did not drain within the grace period",
    "frozen": "service thread stopped responding",
    "loading": "did not load the app in time (--load-timeout)",
    "reload": "replaced by a later reload",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Death:
    # The exit code, or the negated signal number. None if the process never started.
    code: int | None
    # The child's last message when it exited: "drained", "overran", "doomed".
    left: str | None = None
    # Why the parent killed it: "lease", "grace", "frozen", "loading", "memory".
    killed: str | None = None
    # Seconds between the service thread's last heartbeat and the child's end.
    service_heartbeat_age: float = math.inf
    # Boot-time clock reading when it ended.
    ended_at: float = 0.0
    # Killed by the kernel's out-of-memory killer.
    out_of_memory: bool = False

    @property
    def how(self) -> str:
        if self.killed is not None:
            return f"killed: {KILLED.get(self.killed, self.killed)}"
        if self.out_of_memory:
            return "out of memory, SIGKILL"
        code = self.code or 0
        return signal.Signals(-code).name if code < 0 else f"exit code {code}"


_AGAIN = 0.2
# An attempt that ended this close to a crash may have caused it.
_SHORTLY = 1.0
_RENEWAL = 1 / 3


class DeadChildRecovery:
    """Settle dead children's jobs. The parent uses the database only for this."""

    def __init__(self, *, name: str) -> None:
        self._name = name
        self._engine: Engine | None = None
        self._link: ServiceConnection | None = None
        self._lock = asyncio.Lock()

    async def connect_to(self, url: str, schema: str) -> None:
        """Set the database that a child reported, because the parent loads no user code."""
        async with self._lock:
            if self._engine is None:
                # Loading the driver takes 0.4 s, and twice that on a busy machine. The parent must
                # still be able to kill other children in time.
                self._engine = await asyncio.to_thread(_wiring.engine, url, schema=schema)
                self._link = self._engine.service_connection(f"tenure {self._name} parent")

    async def prepare(self, url: str, schema: str) -> None:
        """Connect before a child ends, because the grace period is short."""
        await self.connect_to(url, schema)
        if self._link is not None:
            # `settle` retries and logs the error.
            with suppress(StoreError):
                await self._link.open()

    async def settle(
        self, worker: WorkerId, entries: Sequence[BoardEntry], *, death: Death
    ) -> RecoveredJobs:
        """Settle a dead child's leases within two lease lengths. Return listener events."""
        engine, link = self._engine, self._link
        if engine is None or link is None:
            return RecoveredJobs([])
        ends = [(entry, _ended(entry, outcome)) for entry, outcome in judge(entries, death)]
        lost = sum(end.settlement.ending is AttemptOutcome.LOST for _, end in ends)
        news: list[RecoveredJob] = []
        longest = max((e.lease.ttl for e in entries), default=DEFAULTS.lease)
        until = boottime() + 2 * longest.total_seconds()
        while boottime() < until:
            try:
                gone = engine.store.workers.heartbeat(worker, state=WorkerState.OFFLINE, running=0)
                await link.run(gone)
                if ends:
                    answers = await link.run(
                        engine.store.settlement.settle([end for _, end in ends])
                    )
                    news += _news(ends, answers)
                    busy = [answer.answer is SettleStatus.BUSY for answer in answers]
                    ends = [*compress(ends, busy)]
            except StoreError as error:
                log.warning("parent: cannot recover the jobs of a dead child yet: %s", error)
            else:
                # Locked rows are retried.
                if not ends:
                    if entries:
                        counts = len(entries) - lost, lost
                        log.info(
                            "parent: recovered the jobs of a dead child, released=%d, lost=%d",
                            *counts,
                        )
                    break
            await asyncio.sleep(_AGAIN)
        return RecoveredJobs(news)

    async def close(self) -> None:
        if self._link is not None:
            await self._link.close()


def judge(entries: Sequence[BoardEntry], death: Death) -> list[tuple[BoardEntry, Outcome]]:
    """Decide the outcome of each attempt, based on how its process ended (rule 8).

    Attempts that hadn't started are released. If the handlers weren't the cause, as in a drain, a
    recycling or a database outage, all attempts are released. Otherwise, attempts that ran in the
    child, or ended just before it did, are lost and their jobs become suspects. Attempts in their
    own processes are lost only if none ran in the child itself, because then one of them may have
    ended the child.
    """
    inside = [entry for entry in entries if _was_inside(entry, death)]
    apart = [entry for entry in entries if entry.phase is Phase.IN_PROCESS]
    unexplained = _is_unexplained(entries, death)
    blamed = {id(entry) for entry in inside or apart} if unexplained else set()
    stood_still = death.killed in ("lease", "frozen")
    loss = Loss.OWN if stood_still and len(inside) == 1 and not apart else Loss.SHARED
    error = _error(death, neighbors=len(blamed) - 1)
    given_back = Released(begun=True, error=_given_back(death, unexplained=unexplained))
    outcomes: list[tuple[BoardEntry, Outcome]] = []
    for entry in entries:
        if entry.phase is Phase.TIMED_OUT:
            outcome: Outcome = execution.outcome_of_stop(StopReason.TIMEOUT, None)
        elif entry.phase in NOT_STARTED_PHASES:
            outcome = Released()
        else:
            outcome = Lost(loss, error) if id(entry) in blamed else given_back
        outcomes.append((entry, outcome))
    return outcomes


def _was_inside(entry: BoardEntry, death: Death) -> bool:
    """Return whether this attempt ran in the child, or ended just before it did."""
    if entry.phase is Phase.ENDED:
        return death.ended_at - entry.since < _SHORTLY
    return entry.phase in (Phase.STARTED, Phase.TIMED_OUT)


def _is_unexplained(entries: Sequence[BoardEntry], death: Death) -> bool:
    """Whether only the child's handlers can explain why it ended."""
    if death.left is not None or death.killed not in (None, "lease", "frozen"):
        return False
    if death.killed != "lease":
        return True
    # If the service thread was still running past a deadline, the database didn't respond.
    shortest = min((entry.lease.ttl for entry in entries), default=DEFAULTS.lease)
    return death.service_heartbeat_age > shortest.total_seconds() * _RENEWAL


def _error(death: Death, *, neighbors: int) -> Error:
    neighbors_text = f", with {neighbors} other jobs running in it" if neighbors > 0 else ""
    if death.killed in ("lease", "frozen"):
        return Error(
            "StoodStill", f"its worker process stopped responding and was killed{neighbors_text}"
        )
    if death.out_of_memory:
        return Error(
            "OutOfMemory",
            f"its worker process was killed: the system was out of memory{neighbors_text}",
        )
    how = "unknown" if death.code is None else formatting.describe(death.code)
    return Error("ProcessDied", f"its worker process died: {how}{neighbors_text}")


def _given_back(death: Death, *, unexplained: bool) -> Error:
    if death.killed == "lease" or death.left == "doomed":
        return execution.OUTAGE
    if unexplained:
        return Error("ProcessDied", "its worker process died because of another job")
    return execution.DRAINED


def _news(
    ends: Sequence[tuple[BoardEntry, SettleRequest]], answers: Sequence[SettleResult]
) -> list[RecoveredJob]:
    return [
        RecoveredJob(entry.lease.job_id, entry.attempt, answer.state, answer.reason, end.settlement)
        for (entry, end), answer in zip(ends, answers, strict=True)
        if answer.state is not None and entry.phase not in NOT_STARTED_PHASES
    ]


def _ended(entry: BoardEntry, outcome: Outcome) -> SettleRequest:
    settlement = lifecycle.settle(
        outcome, attempt=entry.attempt, limit=entry.limit, backoff=entry.retry_after
    )
    return SettleRequest(entry.lease, settlement)
