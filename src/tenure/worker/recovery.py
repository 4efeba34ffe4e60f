"""How a child ended, and settling what it held."""

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


# Why a parent kills a child, in words.
KILLED = {
    "lease": "it held a lease past its deadline",
    "grace": "it did not drain within the grace",
    "frozen": "its service thread stood still",
    "loading": "it did not load the app in time (--load-timeout)",
    "reload": "a later reload took its place",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Death:
    """How a child ended, as its parent saw it."""

    # Exit code; negative: the signal's number. None if it never started.
    code: int | None
    # What the child said when it left by itself: "drained", "overran", "doomed".
    left: str | None = None
    # Why the parent killed it: "lease", "grace", "frozen", "loading", "memory".
    killed: str | None = None
    # Seconds between the service thread's last heartbeat and the end.
    service_heartbeat_age: float = math.inf
    # Boottime of the end as the parent saw it.
    ended_at: float = 0.0
    # The kernel's out-of-memory killer, where a cgroup or the signal tells.
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
# What ended as shortly before a crash may have caused it.
_SHORTLY = 1.0
# The share of a lease after which it is renewed.
_RENEWAL = 1 / 3


class DeadChildRecovery:
    """Settles what dead children left. The parent's only business with the database."""

    def __init__(self, *, name: str) -> None:
        self._name = name
        self._engine: Engine | None = None
        self._link: ServiceConnection | None = None

    def connect_to(self, url: str, schema: str) -> None:
        """Learn the database from a child: the parent loads no user code."""
        if self._engine is None:
            self._engine = _wiring.engine(url, schema=schema)
            self._link = self._engine.service_connection(f"tenure {self._name} parent")

    async def prepare(self, url: str, schema: str) -> None:
        """A child is about to end: be connected by then, for the grace is short."""
        self.connect_to(url, schema)
        if self._link is not None:
            # If it fails now, `settle` tries again and says why.
            with suppress(StoreError):
                await self._link.open()

    async def settle(
        self, worker: WorkerId, entries: Sequence[BoardEntry], *, death: Death
    ) -> RecoveredJobs:
        """End the leases of a child that is gone, each as the child's death says, trying for as
        long as they can matter; answers with what listeners are to hear of it."""
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
                log.warning("parent: what a dead child held is not settled yet: %s", error)
            else:
                # What another session has locked is asked again.
                if not ends:
                    if entries:
                        counts = len(entries) - lost, lost
                        log.info("parent: of a dead child %d released, %d lost", *counts)
                    break
            await asyncio.sleep(_AGAIN)
        return RecoveredJobs(news)

    async def close(self) -> None:
        if self._link is not None:
            await self._link.close()


def judge(entries: Sequence[BoardEntry], death: Death) -> list[tuple[BoardEntry, Outcome]]:
    """How each of these running periods ended, by how their process did (rule 8).

    What had not begun is given back. So is everything where the child was ended for a reason that
    is not its handlers': a drain, a recycling, a database that did not answer. Otherwise what ran
    in it, or had ended a moment before, is lost and suspect; what ran in processes of their own
    only if nothing ran inside, for then one of these may have ended the child.
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
    """Whether it may have ended the child: it ran there, or had ended so shortly before that what
    it left behind may have."""
    if entry.phase is Phase.ENDED:
        return death.ended_at - entry.since < _SHORTLY
    return entry.phase in (Phase.STARTED, Phase.TIMED_OUT)


def _is_unexplained(entries: Sequence[BoardEntry], death: Death) -> bool:
    """Whether nothing but its handlers explains the child's end."""
    if death.left is not None or death.killed not in (None, "lease", "frozen"):
        return False
    if death.killed != "lease":
        return True
    # Past a deadline with a service thread that could have renewed: the database did not answer.
    shortest = min((entry.lease.ttl for entry in entries), default=DEFAULTS.lease)
    return death.service_heartbeat_age > shortest.total_seconds() * _RENEWAL


def _error(death: Death, *, neighbors: int) -> Error:
    """Why what ran in a child was lost."""
    beside = f", with {neighbors} other jobs running in it" if neighbors > 0 else ""
    if death.killed in ("lease", "frozen"):
        return Error(
            "StoodStill",
            f"its worker process stood still past a deadline and was killed{beside}",
        )
    if death.out_of_memory:
        return Error(
            "OutOfMemory",
            f"its worker process was killed: the system was out of memory{beside}",
        )
    how = "unknown" if death.code is None else formatting.describe(death.code)
    return Error("ProcessDied", f"its worker process died: {how}{beside}")


def _given_back(death: Death, *, unexplained: bool) -> Error:
    """Why what ran in a child was stopped and given back."""
    if death.killed == "lease" or death.left == "doomed":
        return execution.OUTAGE
    if unexplained:
        return Error("ProcessDied", "the process that watched over it died of another job")
    return execution.DRAINED


def _news(
    ends: Sequence[tuple[BoardEntry, SettleRequest]], answers: Sequence[SettleResult]
) -> list[RecoveredJob]:
    """What was settled just now, of what had begun; what was settled before was announced then."""
    return [
        RecoveredJob(entry.lease.job_id, entry.attempt, answer.state, answer.reason, end.settlement)
        for (entry, end), answer in zip(ends, answers, strict=True)
        if answer.state is not None and entry.phase not in NOT_STARTED_PHASES
    ]


def _ended(entry: BoardEntry, outcome: Outcome) -> SettleRequest:
    settlement = lifecycle.settle(
        outcome,
        attempt=entry.attempt,
        limit=entry.limit,
        backoff=entry.retry_after,
    )
    return SettleRequest(entry.lease, settlement)
