"""The seam between Tenure and a database: what a store can do, written without I/O.

An operation is a generator that yields steps and is sent rows; it does no I/O, so it is
written once and run by a sync or an async session. Which database answers is decided by whoever
makes the store and the session.

A store has one attribute per part. A method without a docstring here has it in the file of that
name in `_store/postgres`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from tenure._model.stats import COUNTED

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from datetime import datetime, timedelta

    from tenure._model.access import NewToken, TokenRow
    from tenure._model.attempt import AttemptRow
    from tenure._model.audit import AuditPage, AuditRow, By
    from tenure._model.diagnostics import (
        LockedJob,
        NotifyQueue,
        OverdueMaintenance,
        SchemaDrift,
        ServerInfo,
        VacuumIssues,
    )
    from tenure._model.explanation import JobContext
    from tenure._model.ids import JobId, Json, WorkerId
    from tenure._model.job import EnqueueResult, JobRow, NewJob, State, UniformBatch
    from tenure._model.lease import (
        ClaimResult,
        Lease,
        LeaseRow,
        ProgressResult,
        RenewResult,
        RescueResult,
        SettleResult,
        StuckLease,
    )
    from tenure._model.operation import (
        Changes,
        ItemOutcome,
        Membership,
        NewBackfill,
        NewOperation,
        OperationItem,
        OperationRow,
        OperationState,
    )
    from tenure._model.outcome import Settlement, SettleRequest
    from tenure._model.overview import (
        Completion,
        DayCounts,
        HorizonHolder,
        HourlyFailures,
        LateSchedule,
        System,
    )
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
    from tenure._model.schedule import (
        DeclareResult,
        FireResult,
        NewSchedule,
        PolicyChange,
        RecentRuns,
        ScheduleRow,
        TickRow,
    )
    from tenure._model.selector import Selector
    from tenure._model.stats import (
        Count,
        Depth,
        FailedGroup,
        LateWork,
        Stats,
        Storage,
        Throughput,
        Totals,
    )
    from tenure._model.worker import HeartbeatResult, NewWorker, WorkerRow, WorkerState
    from tenure._store.steps import Op


class JobStore(Protocol):
    """Jobs: enqueue and read."""

    def enqueue(
        self, jobs: Sequence[NewJob], *, wake: bool = True
    ) -> Op[Sequence[EnqueueResult]]: ...
    def enqueue_pipelined(self, batches: Iterable[UniformBatch]) -> Op[Sequence[EnqueueResult]]:
        """Put batches of jobs without a key into their queues, one behind the other; answers for
        all of them in the order asked. To be performed atomically: what the batches' own iterator
        raises is raised after some of them were sent."""

    def get(self, job_id: JobId) -> Op[JobRow | None]: ...
    def wait(self, job_id: JobId) -> Op[JobRow | None]: ...
    def attempts(self, job_id: JobId) -> Op[Sequence[AttemptRow]]: ...
    def last_attempts(self, ids: Sequence[JobId]) -> Op[Sequence[AttemptRow]]: ...
    def items(
        self, job_id: JobId, *, after: str = "", count: int = 1000
    ) -> Op[Mapping[str, Json]]: ...


class JobSearchStore(Protocol):
    """Lists of jobs, and the search by selector."""

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


class JobCommandStore(Protocol):
    """What operators do to jobs; each with its audit row in the same transaction."""

    def cancel(self, ids: Sequence[JobId], by: By) -> Op[Sequence[CancelStatus]]: ...
    def revoke(self, ids: Sequence[JobId], by: By) -> Op[Sequence[bool]]: ...
    def hold(self, ids: Sequence[JobId], by: By) -> Op[Sequence[bool]]: ...
    def resume(self, ids: Sequence[JobId], by: By) -> Op[Sequence[bool]]: ...
    def retry(self, ids: Sequence[JobId], by: By) -> Op[Sequence[RetryResult]]: ...
    def discard(self, ids: Sequence[JobId], by: By) -> Op[Sequence[bool]]: ...
    def move(self, ids: Sequence[JobId], changes: Changes, by: By) -> Op[Sequence[bool]]: ...
    def delete(self, ids: Sequence[JobId], by: By) -> Op[Sequence[DeleteStatus]]: ...


class LeaseStore(Protocol):
    """Leases: claim, renew, report progress, guard, rescue."""

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
        and fails as a timeout then; `unknown_tasks` are tasks that the worker does not know and
        leaves to others. Suspects come with fewer worker losses than `suspects`; `kept` are the
        caller's own leases, which no claim rescues."""

    def next_due(self, lanes: Sequence[Lane]) -> Op[tuple[datetime | None, datetime]]: ...
    def suspect_waits(self, queues: Sequence[str], worker_losses: int) -> Op[bool]: ...
    def queue_names(
        self, *, patient: bool = False, within: timedelta | None = None
    ) -> Op[Sequence[str]]: ...
    def renew(
        self, leases: Sequence[Lease], *, began: Sequence[bool] | None = None
    ) -> Op[Sequence[RenewResult]]: ...
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

    def guard(self, lease: Lease) -> Op[None]: ...
    def confirm(
        self, leases: Sequence[Lease], *, fail_on_loss: Sequence[bool] | None = None
    ) -> Op[Sequence[bool]]: ...
    def rescue(
        self,
        *,
        floor: datetime | None = None,
        count: int = 500,
        kept: Sequence[Lease] = (),
    ) -> Op[RescueResult]: ...
    def overdue(self, older_than: timedelta, *, count: int = 10) -> Op[Sequence[StuckLease]]: ...


class SettlementStore(Protocol):
    """How running periods end."""

    def settle(self, ended: Sequence[SettleRequest]) -> Op[Sequence[SettleResult]]: ...
    def complete(self, leases: Sequence[Lease]) -> Op[Sequence[Lease]]:
        """Complete jobs without a key whose handlers left neither a result nor a log, as most do.
        Returns the leases that it did not end: `settle` finds out why."""

    def check(self, lease: Lease) -> Op[None]: ...
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


class QueueStore(Protocol):
    """What operators set for queues; each with its audit row in the same transaction."""

    def pause(self, name: str, by: By, *, until: datetime | None = None) -> Op[QueueRow]: ...
    def resume(self, name: str, by: By) -> Op[QueueRow]: ...
    def limit(self, name: str, limit: int | None, by: By) -> Op[QueueRow]: ...
    def configure(
        self, name: str, by: By, *, lease: timedelta | None, max_attempts: int | None
    ) -> Op[QueueRow]: ...
    def list(self) -> Op[Sequence[QueueRow]]: ...


class SettingStore(Protocol):
    """What operators set for the whole installation, with audit rows."""

    def set(self, name: str, value: Json, by: By) -> Op[None]: ...
    def reset(self, name: str, by: By) -> Op[None]: ...
    def changed(self) -> Op[Mapping[str, Json]]: ...


class WorkerStore(Protocol):
    """Workers' presence. No lease depends on it."""

    def register(self, worker: NewWorker) -> Op[None]: ...
    def heartbeat(
        self, worker: WorkerId, *, state: WorkerState, running: int, meta: Json = None
    ) -> Op[HeartbeatResult]: ...
    def heartbeat_many(self, running: Mapping[WorkerId, int]) -> Op[Mapping[WorkerId, bool]]: ...
    def drain(self, worker: WorkerId, by: By) -> Op[bool]: ...
    def list(self) -> Op[Sequence[WorkerRow]]: ...


class AuditStore(Protocol):
    """What operators did."""

    def record(self, by: By, action: str, targets: Sequence[str]) -> Op[None]: ...
    def list(
        self, target: str, *, count: int = 100, before: int | None = None
    ) -> Op[Sequence[AuditRow]]: ...
    def search(
        self,
        *,
        target: str | None = None,
        actor: str | None = None,
        source: str | None = None,
        action: str | None = None,
        enqueued: bool = True,
        count: int = 100,
        before: int | None = None,
    ) -> Op[AuditPage]: ...


class ScheduleStore(Protocol):
    """Schedules. A name that no schedule has is an InvalidValue."""

    def declare(
        self, program: str, version: Sequence[int], schedules: Sequence[NewSchedule]
    ) -> Op[DeclareResult]:
        """Bring a program's schedules to what its code says, in one transaction: write those that
        differ, retire those that it no longer has; nothing that a newer version wrote."""

    def create(self, schedule: NewSchedule, by: By) -> Op[ScheduleRow]: ...
    def update(self, schedule: NewSchedule, by: By) -> Op[ScheduleRow]: ...
    def set_policy(self, name: str, change: PolicyChange, by: By) -> Op[ScheduleRow]: ...
    def pause(self, name: str, by: By, *, until: datetime | None = None) -> Op[ScheduleRow]: ...
    def resume(self, name: str, by: By) -> Op[ScheduleRow]: ...
    def delete(self, name: str, by: By) -> Op[ScheduleRow]: ...
    def run(self, name: str, by: By, *, key: str | None = None) -> Op[EnqueueResult]: ...
    def get(self, name: str, *, lock: bool = False) -> Op[ScheduleRow | None]:
        """The schedule of this name, or None; locked until the transaction's end, if it is to be
        changed from what it is."""

    def list(self, *, after: str = "", count: int = 100) -> Op[Sequence[ScheduleRow]]: ...


class TickStore(Protocol):
    """Ticks of schedules."""

    def fire(
        self, *, count: int = 100, floor: datetime | None = None, unread: Collection[str] = ()
    ) -> Op[FireResult]:
        """Account for what is due of up to `count` schedules: each tick makes its job or a row
        that says why not, and the schedule's next time moves on, in one transaction. Any number
        may fire at once; a schedule that another one is at is passed over. What has been due
        since before `floor` is left to a pass without one. A schedule that cannot be read here
        is told and left to others, as are those in `unread`."""

    def list(
        self, name: str, *, before: datetime | None = None, count: int = 50
    ) -> Op[Sequence[TickRow]]: ...


class OperationStore(Protocol):
    """Operations and their items. An id that no operation has is an InvalidValue."""

    def start(self, new: NewOperation, by: By, *, keep: bool = True) -> Op[OperationRow]:
        """Freeze the members of an operation, in one transaction with its row, which says how many
        they are. Without `keep` they are only counted: for a rehearsal."""

    def start_backfill(self, new: NewBackfill, by: By, *, keep: bool = True) -> Op[OperationRow]:
        """Freeze those of a schedule's ticks that have no job, as the members of an operation that
        makes it for each."""

    def next_due(self) -> Op[tuple[datetime | None, datetime]]: ...
    def run_chunk(self) -> Op[int]:
        """Do one chunk of the operation that has been due the longest: its items, their outcomes
        and its next time in one transaction; answers how many. Any number may advance at once; an
        operation that another one is at is passed over."""

    def steer(self, operation_id: int, wanted: OperationState, by: By) -> Op[OperationRow]:
        """Pause, resume (`running`) or abort; once it is answered, no chunk goes on under the old
        state. InvalidValue if it has ended."""

    def get(self, operation_id: int) -> Op[OperationRow | None]: ...
    def list(self, *, before: int | None = None, count: int = 50) -> Op[Sequence[OperationRow]]: ...
    def items(
        self,
        operation_id: int,
        *,
        outcome: ItemOutcome | None = None,
        after: int = 0,
        count: int = 100,
    ) -> Op[tuple[Sequence[OperationItem], int | None]]:
        """An operation's items in their order, behind a place, and where the next page begins,
        None at the end alone. What is searched per page is bounded."""

    def of_job(self, job_id: JobId, *, count: int = 100) -> Op[Sequence[Membership]]: ...


class TokenStore(Protocol):
    """Access tokens, and the answers to requests with an idempotency key."""

    def create(self, new: NewToken, by: By) -> Op[TokenRow]: ...
    def find(self, digest: str) -> Op[TokenRow | None]: ...
    def touch(self, ids: Sequence[int]) -> Op[int]: ...
    def list(
        self, *, before: int | None = None, count: int = 100, active: bool = False
    ) -> Op[Sequence[TokenRow]]: ...
    def revoke(self, ids: Sequence[int], by: By) -> Op[Sequence[bool]]: ...
    def once(self, actor: str, key: str, digest: str, op: Op[Json]) -> Op[tuple[Json, bool]]: ...


class StatsStore(Protocol):
    """Counts of what has ended and of what is there. None goes through an unbounded set."""

    def roll_up(self) -> Op[int]: ...
    def over_time(
        self,
        *,
        queue: str | None = None,
        task: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        step: timedelta,
    ) -> Op[Stats]: ...
    def totals(self, since: datetime | None = None) -> Op[Totals]:
        """What ended from an instant on, by queue and task, from the counts per minute; without
        one, the last hour, which tells from when on to ask."""

    def depths(self, *, most: int = COUNTED) -> Op[Sequence[Depth]]: ...
    def failed_groups(
        self,
        *,
        queue: str | None = None,
        task: str | None = None,
        count: int,
        after: tuple[str, str | None] | None = None,
    ) -> Op[Sequence[FailedGroup]]: ...
    def facts(self, job_id: JobId) -> Op[JobContext | None]: ...


class OverviewStore(Protocol):
    """Figures for whoever looks at all of it at once. None goes through an unbounded set."""

    def lateness(self) -> Op[LateWork]: ...
    def storage(self) -> Op[Storage]: ...
    def pulse(self) -> Op[DayCounts]: ...
    def retrying(self, queues: Sequence[str]) -> Op[Count]: ...
    def hours(
        self, queues: Sequence[str]
    ) -> Op[Mapping[str, tuple[HourlyFailures, HourlyFailures]]]: ...
    def completions(self, *, count: int) -> Op[Sequence[Completion]]: ...
    def holders(self, *, count: int) -> Op[Sequence[HorizonHolder]]: ...
    def late_schedules(
        self, older_than: timedelta, *, count: int
    ) -> Op[Sequence[LateSchedule]]: ...


class InspectionStore(Protocol):
    """What people and the doctor look at. None of it goes through an unbounded set."""

    def leases(
        self, *, worker: WorkerId | None = None, queue: str | None = None, count: int = 100
    ) -> Op[Sequence[LeaseRow]]: ...
    def throughput(self, queues: Sequence[str], *, minutes: int = 30) -> Op[Throughput]: ...
    def recent_runs(
        self, names: Sequence[str], *, count: int = 20
    ) -> Op[Mapping[str, RecentRuns]]: ...
    def system(self) -> Op[System]: ...
    def server_info(self) -> Op[ServerInfo]: ...
    def rights(self, role: str) -> Op[Sequence[str]]: ...
    def schema_drift(self) -> Op[Sequence[SchemaDrift]]: ...
    def overdue_maintenance(self) -> Op[OverdueMaintenance]: ...
    def notify_queue(self) -> Op[NotifyQueue]: ...
    def locked(
        self, queues: Sequence[str], older_than: timedelta, *, count: int
    ) -> Op[Sequence[LockedJob]]: ...
    def vacuum_issues(self) -> Op[VacuumIssues]: ...


class MaintenanceStore(Protocol):
    """Partitions and retention."""

    def maintain(self) -> Op[MaintenanceReport]:
        """Make the partitions ahead, drop what is past its retention. Needs the owner's role and
        a connection outside any transaction."""

    def clear(self) -> Op[None]: ...


class SchemaStore(Protocol):
    """The version of the schema."""

    def version(self) -> Op[tuple[int, int | None]]: ...
    def check(self) -> Op[None]: ...
    def migrate(self, *, to: int | None = None) -> Op[Sequence[str]]: ...


@dataclass(frozen=True)
class Store:
    """What a store can do, by its parts. Each method describes an operation; a runner runs it."""

    jobs: JobStore
    job_queries: JobSearchStore
    job_commands: JobCommandStore
    leases: LeaseStore
    settlement: SettlementStore
    queues: QueueStore
    settings: SettingStore
    workers: WorkerStore
    audit: AuditStore
    schedules: ScheduleStore
    ticks: TickStore
    operations: OperationStore
    tokens: TokenStore
    stats: StatsStore
    overview: OverviewStore
    inspection: InspectionStore
    maintenance: MaintenanceStore
    schema: SchemaStore
