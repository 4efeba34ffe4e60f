"""The leases that this process holds, from claim to settle.

The handlers' event loop and the service thread both use them, under one lock.
"""

import threading
from collections.abc import Iterator
from datetime import timedelta
from enum import Enum
from typing import TYPE_CHECKING, Protocol

from tenure._clock import boottime
from tenure._model.lease import ClaimedJob
from tenure._rules import leasing
from tenure._rules.leasing import LeaseTimes
from tenure._runtime.lease_board import ACTIVE_PHASES, NEVER, LeaseBoard, Phase
from tenure.job import LeaseState, ignore_extension
from tenure.task import Definition, time_limit

if TYPE_CHECKING:
    from tenure._model.ids import JobId, Token
    from tenure._model.job import JobRow
    from tenure._model.lease import Lease


class StopReason(Enum):
    """Why a handler must stop. A later member overrides an earlier one."""

    CANCEL = "cancel requested"
    TIMEOUT = "timed out"
    DRAIN = "worker draining"
    LEASE = "lease lost or at risk"

    @property
    def rank(self) -> int:
        return list(StopReason).index(self)


class RunningHandler(Protocol):
    """A handler running on the loop, in a thread or in a process."""

    def stop(self, why: StopReason) -> None:
        """Request a stop from any thread, without waiting."""

    def cancel_requested(self) -> None:
        """Make the cancel request visible to the handler."""

    def kill(self) -> bool:
        """Kill the handler. Return False if only ending the whole child would stop it."""


class HeldLease:
    __slots__ = (
        "_board",
        "cancel_seen_at",
        "confirm",
        "ended_at",
        "extended_until",
        "job",
        "lease",
        "lease_state",
        "phase",
        "renew_at",
        "running",
        "sent_at",
        "slot_index",
        "started_at",
        "stop_sent_at",
        "stopping",
        "suspect",
        "task",
        "terms",
        "time_limit",
        "timeout_at",
        "trusted_until",
    )  # fmt: skip

    def __init__(
        self, claimed: ClaimedJob, task: Definition, terms: LeaseTimes, sent_at: float
    ) -> None:
        job = claimed.job
        self.job: JobRow = job
        self.lease: Lease = claimed.lease
        self.task: Definition = task
        self.terms: LeaseTimes = terms
        self.time_limit: timedelta | None = time_limit(task, job.meta)
        self.suspect: bool = job.suspect
        self.confirm: bool = claimed.confirm or task.on_loss == "fail"
        self.lease_state: LeaseState = LeaseState(claimed.lease, extended=self.extend)
        self.running: RunningHandler | None = None
        self.phase: Phase = Phase.UNSTARTED
        self.started_at: float | None = None
        self.ended_at: float | None = None
        self.timeout_at: float = NEVER
        self.cancel_seen_at: float = NEVER
        self.stopping: StopReason | None = None
        self.stop_sent_at: float = NEVER
        self.slot_index: int | None = None
        self._board: LeaseBoard | None = None
        self.sent_at: float = sent_at
        self.renew_at: float = sent_at + terms.renew_after
        self.trusted_until: float = sent_at + terms.trusted_for
        self.extended_until: float = 0.0
        self.lease_state.trusted_until = self.trusted_until
        self.lease_state.stop_within = terms.stop_within

    def extend(self, sent_at: float, extend: timedelta | None = None) -> None:
        """Trust the lease after a renewal, or after a report that may `extend` it further."""
        if extend is not None and extend > self.lease.ttl:
            # The store doesn't shorten a lease, so neither does this. Renewals keep their pace,
            # because their answers carry cancel requests.
            trusted = leasing.trusted_extension(self.terms, self.lease.ttl, extend)
            self.extended_until = max(self.extended_until, sent_at + trusted)
        # A renewal and a report may overlap. The store's expiry is at least the later of the two.
        sent_at = self.sent_at = max(sent_at, self.sent_at)
        self.renew_at = sent_at + self.terms.renew_after
        self.trusted_until = sent_at + self.terms.trusted_for
        # Last, and read again: the report runs on another thread than the renewal.
        self.trusted_until = max(self.trusted_until, self.extended_until)
        self.lease_state.trusted_until = self.trusted_until
        if (follow := self.lease_state.follower) is not None:
            follow(self.trusted_until)
        if self._board is not None:
            with self._board.lock:
                if self.slot_index is not None:
                    self._board.extend(self.slot_index, self.must_end_at)

    def begin(self, phase: Phase, now: float) -> None:
        # Only on the loop's thread, the only one that frees places.
        self.started_at = now
        limit = self.time_limit
        self.timeout_at = NEVER if limit is None else now + limit.total_seconds()
        self.lease_state.timeout_at = self.timeout_at
        self.phase = phase
        if self._board is not None and self.slot_index is not None:
            self._board.begin(self.slot_index, phase, now)

    @property
    def begun(self) -> bool:
        return self.started_at is not None

    def may_begin(self, now: float) -> bool:
        return self.stopping is None and now < self.trusted_until

    def end(self, now: float) -> None:
        if self.ended_at is None:
            self.ended_at = now
        self.phase = Phase.ENDED
        if self._board is not None and self.slot_index is not None:
            self._board.end(self.slot_index, now, begun=self.started_at is not None)

    @property
    def took(self) -> timedelta | None:
        """How long the attempt ran, or None if it hasn't started or hasn't ended."""
        if self.started_at is None or self.ended_at is None:
            return None
        return timedelta(seconds=self.ended_at - self.started_at)

    @property
    def must_end_at(self) -> float:
        """When the parent kills the child because of this lease."""
        return self.trusted_until + self.terms.stop_within

    def show(self, board: LeaseBoard) -> None:
        """Put the lease on the board for the parent to see. Requires the board's lock."""
        self._board = board
        job = self.job
        self.slot_index = board.put(
            self.lease, stop_at=self.must_end_at, attempt=job.attempt, limit=job.max_attempts
        )

    def mark(self, phase: Phase) -> None:
        # Only on the loop's thread, the only one that frees places.
        self.phase = phase
        if self._board is not None and self.slot_index is not None:
            self._board.mark(self.slot_index, phase)

    def time_out(self, retry_after: timedelta) -> None:
        # This runs on the service thread, so it takes the lock, because the place may now belong to
        # another lease.
        self.phase = Phase.TIMED_OUT
        if self._board is not None:
            with self._board.lock:
                if self.slot_index is not None:
                    self._board.time_out(self.slot_index, retry_after)

    def let_go(self) -> None:
        """Remove the settled lease from the board. Requires the board's lock."""
        # Breaks a reference cycle that would last until the next garbage collection.
        self.lease_state.extended = ignore_extension
        if self._board is not None and self.slot_index is not None:
            self._board.clear(self.slot_index)
            self.slot_index = None

    def stop(self, why: StopReason, now: float) -> None:
        """Request a stop, at most once per reason."""
        if self.stopping is why or (self.stopping or why).rank > why.rank:
            return
        self.stopping = why
        self.stop_sent_at = now
        if why is StopReason.LEASE:
            self.lease_state.lost = True
        if self.running is not None:
            self.running.stop(why)


class HeldLeases:
    def __init__(self, board: LeaseBoard | None = None) -> None:
        self._lock = threading.Lock()
        self._held: dict[tuple[JobId, Token], HeldLease] = {}
        self.suspects: set[HeldLease] = set()
        self._board = board
        self._board_lock = threading.Lock() if board is None else board.lock

    def __len__(self) -> int:
        return len(self._held)

    def __iter__(self) -> Iterator[HeldLease]:
        with self._lock:
            return iter(list(self._held.values()))

    @property
    def capacity(self) -> int:
        return 1_000_000 if self._board is None else self._board.capacity

    @property
    def running(self) -> int:
        return sum(held.phase in ACTIVE_PHASES for held in self)

    @property
    def at_risk(self) -> list["Lease"]:
        """Return leases that may have expired but that this process hasn't released yet."""
        now = boottime()
        return [held.lease for held in self if now >= held.trusted_until]

    def add(self, *taken: HeldLease) -> None:
        with self._lock, self._board_lock:
            for held in taken:
                if self._board is not None:
                    held.show(self._board)
                self._held[held.lease.job_id, held.lease.token] = held
                if held.suspect:
                    self.suspects.add(held)

    def drop(self, *settled: HeldLease) -> None:
        with self._lock, self._board_lock:
            for held in settled:
                if self._held.pop((held.lease.job_id, held.lease.token), None) is not None:
                    if held.suspect:
                        self.suspects.discard(held)
                    held.let_go()
