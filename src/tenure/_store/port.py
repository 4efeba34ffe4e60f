"""The seam between Tenure and a database: what a store can do, written without I/O.

An operation is a generator that yields steps and is sent rows; it does no I/O, so it is
written once and driven by a sync or an async runner (see `runner`). Which database answers
is decided by whoever makes the store and the runner.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from tenure._store.port_insight import (
    AccessStore,
    InspectionStore,
    OverviewStore,
    ServerInfoStore,
    StatsStore,
)
from tenure._store.port_schedules import OperationStore, ScheduleStore

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime, timedelta

    from tenure._model.attempt import AttemptRow
    from tenure._model.audit import AuditRow, By
    from tenure._model.ids import JobId, Json, WorkerId
    from tenure._model.job import EnqueueResult, JobRow, NewJob, State, UniformBatch
    from tenure._model.lease import (
        ClaimResult,
        Lease,
        ProgressResult,
        RenewResult,
        RescueResult,
        SettleResult,
        StuckLease,
    )
    from tenure._model.operation import Changes
    from tenure._model.outcome import Settlement, SettleRequest
    from tenure._model.queue import Lane, QueueRow
    from tenure._model.results import (
        CancelStatus,
        DeleteStatus,
        JobPage,
        JobSource,
        MaintenanceReport,
        PageCursor,
        RetryResult,
        SearchPage,
    )
    from tenure._model.selector import Selector
    from tenure._model.worker import HeartbeatResult, NewWorker, WorkerRow, WorkerState
    from tenure._store.steps import Op


class Store(
    ScheduleStore,
    OperationStore,
    AccessStore,
    StatsStore,
    OverviewStore,
    ServerInfoStore,
    InspectionStore,
    Protocol,
):
    """What every store can do. Each method describes an operation; a runner performs it."""

    # Jobs
    def enqueue(self, jobs: Sequence[NewJob], *, wake: bool = True) -> Op[Sequence[EnqueueResult]]:
        """Put jobs into their queues; answers in the order asked."""

    def enqueue_pipelined(self, batches: Iterable[UniformBatch]) -> Op[Sequence[EnqueueResult]]:
        """Put batches of jobs without a key into their queues, one behind the other; answers for
        all of them in the order asked. To be performed atomically: what the batches' own iterator
        raises is raised after some of them were sent."""

    def get(self, job_id: JobId) -> Op[JobRow | None]:
        """The job wherever it is now, or None."""

    def wait(self, job_id: JobId) -> Op[JobRow | None]:
        """Ask to be told when the job ends, and read it as it is now."""

    def list(
        self,
        state: State,
        *,
        queue: str | None = None,
        task: str | None = None,
        signature: str | None = None,
        count: int = 50,
        place: PageCursor | None = None,
    ) -> Op[JobPage]:
        """Jobs in one state, newest first. What is searched per page is bounded. Only dead letters
        have the `signature` of an error."""

    def search(
        self,
        selector: Selector,
        *,
        count: int,
        window: int,
        places: Mapping[JobSource, JobId] | None = None,
    ) -> Op[SearchPage]:
        """The jobs that a selector means, newest first, among `window` rows of all piles;
        `places` is the last page's `next`."""

    def attempts(self, job_id: JobId) -> Op[Sequence[AttemptRow]]:
        """The job's ended running periods, oldest first."""

    def last_attempts(self, ids: Sequence[JobId]) -> Op[Sequence[AttemptRow]]:
        """The last ended running period of each job that has one, without trace and log."""

    def items(self, job_id: JobId, *, after: str = "", count: int = 1000) -> Op[Mapping[str, Json]]:
        """The job's result items by key, above a key."""

    # Leases
    def claim(
        self,
        lanes: Sequence[Lane],
        *,
        count: int,
        worker: WorkerId,
        ttl: timedelta | None = None,
        limited: bool = False,
        patient: bool = False,
        within: timedelta | None = None,
        unknown_tasks: Sequence[str] = (),
        suspects: int = 3,
        kept: Sequence[Lease] = (),
    ) -> Op[ClaimResult]:
        """Claim due jobs from lanes in order. `limited` is a hint from the last answer;
        `patient` is for a scan from zero, which may take long; `within` is for one that must not,
        and fails as a timeout then; `strangers` are tasks that the worker does not know and
        leaves to others. Suspects come with fewer worker losses than `suspects`; `kept` are the
        caller's own leases, which no claim rescues."""

    def next_due(self, lanes: Sequence[Lane]) -> Op[tuple[datetime | None, datetime]]:
        """The earliest time ahead at which something is due in these lanes, and the time now."""

    def suspect_waits(self, queues: Sequence[str], worker_losses: int) -> Op[bool]:
        """Whether a due suspect waits in these queues that must run alone: by its deaths, or by
        this many worker losses."""

    def queue_names(
        self, *, patient: bool = False, within: timedelta | None = None
    ) -> Op[Sequence[str]]:
        """The queues that have something queued; `patient` and `within` as of a claim."""

    def renew(
        self, leases: Sequence[Lease], *, began: Sequence[bool] | None = None
    ) -> Op[Sequence[RenewResult]]:
        """Extend leases by their own length; answers in the order asked. Never waits. `began`
        says which handlers have begun (default: all)."""

    def progress(
        self,
        lease: Lease,
        *,
        cursor: Json = None,
        items: Mapping[str, Json] | None = None,
        done: int | None = None,
        total: int | None = None,
        message: str | None = None,
        also: Sequence[NewJob] = (),
        log: str | None = None,
    ) -> Op[ProgressResult]:
        """Record a report and extend the lease; LeaseLost if it is lost or over. The report that
        reaches the job's target also settles it, with what follows from it and what it logged, in
        the same transaction."""

    def settle(self, ended: Sequence[SettleRequest]) -> Op[Sequence[SettleResult]]:
        """End running periods; answers in the order asked. Sending the same again is harmless."""

    def check(self, lease: Lease) -> Op[None]:
        """LeaseLost unless the lease is still the job's. No lock."""

    def settle_within(
        self,
        lease: Lease,
        settlement: Settlement,
        *,
        also: Sequence[NewJob] = (),
        log: str | None = None,
        hurried: bool = False,
    ) -> Op[None]:
        """End one running period as the last statements of a caller's transaction, and enqueue
        what follows from it; LeaseLost, and the caller must roll back, if the lease is no longer
        the job's. `hurried` gives up on a lock soon, where nobody waits for this one alone."""

    def guard(self, lease: Lease) -> Op[None]:
        """Fence a caller's transaction until its commit, without ending the job."""

    def confirm(
        self, leases: Sequence[Lease], *, fail_on_loss: Sequence[bool] | None = None
    ) -> Op[Sequence[bool]]:
        """Say that these jobs are about to begin, and extend their leases; False: it may not.
        `fail_on_loss` says of which jobs every loss is the end (default: as their rows say)."""

    def rescue(
        self,
        *,
        floor: datetime | None = None,
        count: int = 500,
        kept: Sequence[Lease] = (),
    ) -> Op[RescueResult]:
        """End leases that ran out. Any process may, any number at once; what the caller itself
        still holds (`kept`) is left for it to give back."""

    def overdue(self, older_than: timedelta, *, count: int = 10) -> Op[Sequence[StuckLease]]:
        """Leases that have been over for longer than this, and who keeps them from a rescue."""

    # What operators do; each with its audit row in the same transaction
    def cancel(self, ids: Sequence[JobId], by: By) -> Op[Sequence[CancelStatus]]:
        """Queued: ended at once. Running: asked to."""

    def revoke(self, ids: Sequence[JobId], by: By) -> Op[Sequence[bool]]:
        """Take running jobs from their holders and end them as cancelled."""

    def hold(self, ids: Sequence[JobId], by: By) -> Op[Sequence[bool]]:
        """Keep queued jobs from being claimed."""

    def resume(self, ids: Sequence[JobId], by: By) -> Op[Sequence[bool]]:
        """Let held jobs go on, in their old place."""

    def retry(self, ids: Sequence[JobId], by: By) -> Op[Sequence[RetryResult]]:
        """Bring dead letters back for a new life."""

    def discard(self, ids: Sequence[JobId], by: By) -> Op[Sequence[bool]]:
        """Delete dead letters for good."""

    def move(self, ids: Sequence[JobId], changes: Changes, by: By) -> Op[Sequence[bool]]:
        """Give queued jobs another queue, priority or time."""

    def delete(self, ids: Sequence[JobId], by: By) -> Op[Sequence[DeleteStatus]]:
        """Delete ended jobs for good, with their items and keys; a live one is refused."""

    def pause_queue(self, name: str, by: By, *, until: datetime | None = None) -> Op[QueueRow]:
        """Let nothing be claimed from a queue (`*`: from any), until then or until resumed."""

    def resume_queue(self, name: str, by: By) -> Op[QueueRow]:
        """Let a paused queue go on."""

    def limit_queue(self, name: str, limit: int | None, by: By) -> Op[QueueRow]:
        """Let at most `limit` jobs of a queue (`*`: of all) run at once; None takes it away."""

    def configure_queue(
        self, name: str, by: By, *, lease: timedelta | None, max_attempts: int | None
    ) -> Op[QueueRow]:
        """Give a queue its own lease and attempts; None leaves them to the settings."""

    def queues(self) -> Op[Sequence[QueueRow]]:
        """What operators have set for queues."""

    def set_setting(self, name: str, value: Json, by: By) -> Op[None]:
        """Change a setting for the whole installation at run time."""

    def reset_setting(self, name: str, by: By) -> Op[None]:
        """Take a setting back to its built-in value."""

    def settings(self) -> Op[Mapping[str, Json]]:
        """The settings changed at run time."""

    def drain(self, worker: WorkerId, by: By) -> Op[bool]:
        """Ask a worker to drain; False if it is unknown."""

    def record_audit(self, by: By, action: str, targets: Sequence[str]) -> Op[None]:
        """Record what an operator did by a verb that takes no `By`, in its transaction."""

    def audit(
        self, target: str, *, count: int = 100, before: int | None = None
    ) -> Op[Sequence[AuditRow]]:
        """What was done to a target, newest first, below an id."""

    # Presence
    def register(self, worker: NewWorker) -> Op[None]:
        """Make a worker known."""

    def heartbeat(
        self, worker: WorkerId, *, state: WorkerState, running: int, meta: Json = None
    ) -> Op[HeartbeatResult]:
        """Renew a worker's presence."""

    def heartbeat_many(self, running: Mapping[WorkerId, int]) -> Op[Mapping[WorkerId, bool]]:
        """Renew the presence of several workers; the answer has those that are known, and whether
        each was asked to drain."""

    def workers(self) -> Op[Sequence[WorkerRow]]:
        """All known workers."""

    # Upkeep
    def maintain(self) -> Op[MaintenanceReport]:
        """Make the partitions ahead, drop what is past its retention. Needs the owner's role and
        a connection outside any transaction."""

    def clear(self) -> Op[None]:
        """Remove everything but the schema itself: for tests, between one and the next."""
