"""The interface between Tenure and a database: operations as generators that do no I/O.

An operation yields steps and receives rows. It is therefore written only once, and can be run by
either a sync or an async session. Each method is documented in the corresponding file in
`_store/postgres`.

This file is longer than 500 lines because it lists, in one place, every operation that a store must
have.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from tenure._model.stats import COUNTED

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from datetime import datetime, timedelta

    from tenure._model.access import KnownToken, NewSession, NewToken, SessionRow, TokenRow
    from tenure._model.attempt import AttemptRow
    from tenure._model.audit import AuditPage, AuditRow, By
    from tenure._model.diagnostics import (
        LockedJob,
        NotifyQueue,
        OverdueMaintenance,
        RoleSetting,
        SchemaDrift,
        ServerInfo,
        VacuumIssues,
    )
    from tenure._model.edit import JobChanges
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
    from tenure._model.notice import (
        DeadLetterError,
        DeclaredNoticeRules,
        NewNoticeRule,
        NoticeEvent,
        NoticeRule,
    )
    from tenure._model.operation import (
        Changes,
        Erasure,
        ItemOutcome,
        Membership,
        NewBackfill,
        NewErasure,
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
    from tenure._model.queue import Lane, QueueRow, QueueUsage
    from tenure._model.results import (
        CancelStatus,
        DeleteStatus,
        EditStatus,
        FreeResult,
        JobPage,
        JobSource,
        MaintenanceReport,
        PageCursor,
        RerunResult,
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
    from tenure._rules.sealing import Sealing
    from tenure._store.steps import Op


class JobStore(Protocol):
    def enqueue(
        self, jobs: Sequence[NewJob], *, wake: bool = True
    ) -> Op[Sequence[EnqueueResult]]: ...
    def enqueue_pipelined(self, batches: Iterable[UniformBatch]) -> Op[Sequence[EnqueueResult]]: ...

    def get(self, job_id: JobId) -> Op[JobRow | None]: ...
    def get_many(
        self, ids: Sequence[JobId], *, largest: int | None = None
    ) -> Op[Sequence[JobRow]]: ...
    def wait(self, job_id: JobId) -> Op[JobRow | None]: ...
    def queues_of(self, ids: Sequence[JobId]) -> Op[Mapping[JobId, str]]: ...
    def attempts(self, job_id: JobId) -> Op[Sequence[AttemptRow]]: ...
    def last_attempts(self, ids: Sequence[JobId]) -> Op[Sequence[AttemptRow]]: ...
    def items(
        self, job_id: JobId, *, after: str = "", count: int = 1000
    ) -> Op[Mapping[str, Json]]: ...


class JobSearchStore(Protocol):
    def list(
        self,
        state: State,
        *,
        queue: str | None = None,
        task: str | None = None,
        signature: str | None = None,
        count: int = 50,
        place: PageCursor | None = None,
        granted: Sequence[str] | None = None,
        largest: int | None = None,
    ) -> Op[JobPage]: ...

    def search(
        self,
        selector: Selector,
        *,
        count: int,
        window: int,
        places: Mapping[JobSource, JobId] | None = None,
        granted: Sequence[str] | None = None,
        largest: int | None = None,
    ) -> Op[SearchPage]: ...


class JobCommandStore(Protocol):
    """Operators' job commands, each in one transaction with its audit row."""

    def cancel(self, ids: Sequence[JobId], by: By) -> Op[Sequence[CancelStatus]]: ...
    def revoke(self, ids: Sequence[JobId], by: By) -> Op[Sequence[bool]]: ...
    def hold(self, ids: Sequence[JobId], by: By) -> Op[Sequence[bool]]: ...
    def resume(self, ids: Sequence[JobId], by: By) -> Op[Sequence[bool]]: ...
    def retry(self, ids: Sequence[JobId], by: By) -> Op[Sequence[RetryResult]]: ...
    def discard(self, ids: Sequence[JobId], by: By) -> Op[Sequence[bool]]: ...
    def move(self, ids: Sequence[JobId], changes: Changes, by: By) -> Op[Sequence[bool]]: ...
    def delete(self, ids: Sequence[JobId], by: By) -> Op[Sequence[DeleteStatus]]: ...
    def free_key(self, task: str, key: str, by: By) -> Op[FreeResult]: ...


class JobEditStore(Protocol):
    """Edits of stored jobs, and new runs of ended ones, each in one transaction with its audit."""

    def edit(
        self, ids: Sequence[JobId], changes: JobChanges, by: By, *, sealing: Sealing
    ) -> Op[Sequence[EditStatus]]: ...
    def retry(
        self, ids: Sequence[JobId], args: Mapping[str, Json], by: By, *, sealing: Sealing
    ) -> Op[Sequence[RetryResult]]: ...
    def rerun(
        self,
        ids: Sequence[JobId],
        by: By,
        *,
        args: Mapping[str, Json] | None,
        keep_key: bool,
        sealing: Sealing,
    ) -> Op[Sequence[RerunResult]]: ...


class LeaseStore(Protocol):
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
    ) -> Op[ClaimResult]: ...

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
        extend: timedelta | None = None,
        also: Sequence[NewJob] = (),
        log: str | None = None,
    ) -> Op[ProgressResult]: ...

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
    def settle(self, ended: Sequence[SettleRequest]) -> Op[Sequence[SettleResult]]: ...
    def complete(self, leases: Sequence[Lease]) -> Op[Sequence[Lease]]: ...

    def check(self, lease: Lease) -> Op[None]: ...
    def settle_within(
        self,
        lease: Lease,
        settlement: Settlement,
        *,
        also: Sequence[NewJob] = (),
        log: str | None = None,
        hurried: bool = False,
    ) -> Op[None]: ...


class QueueStore(Protocol):
    """Operators' queue settings, each in one transaction with its audit row."""

    def pause(self, name: str, by: By, *, until: datetime | None = None) -> Op[QueueRow]: ...
    def resume(self, name: str, by: By) -> Op[QueueRow]: ...
    def limit(self, name: str, limit: int | None, by: By) -> Op[QueueRow]: ...
    def set_quotas(self, name: str, quotas: Mapping[str, float], by: By) -> Op[QueueRow]: ...
    def configure(
        self, name: str, by: By, *, lease: timedelta | None, max_attempts: int | None
    ) -> Op[QueueRow]: ...
    def list(self) -> Op[Sequence[QueueRow]]: ...


class SettingStore(Protocol):
    def set(self, name: str, value: Json, by: By) -> Op[None]: ...
    def reset(self, name: str, by: By) -> Op[None]: ...
    def changed(self) -> Op[Mapping[str, Json]]: ...


class WorkerStore(Protocol):
    """Worker presence. No lease depends on it."""

    def register(self, worker: NewWorker) -> Op[None]: ...
    def heartbeat(
        self, worker: WorkerId, *, state: WorkerState, running: int, meta: Json = None
    ) -> Op[HeartbeatResult]: ...
    def heartbeat_many(self, running: Mapping[WorkerId, int]) -> Op[Mapping[WorkerId, bool]]: ...
    def drain(self, worker: WorkerId, by: By) -> Op[bool]: ...
    def list(self) -> Op[Sequence[WorkerRow]]: ...


class AuditStore(Protocol):
    def record(
        self, by: By, action: str, targets: Sequence[str], *, after: Json = None
    ) -> Op[None]: ...
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
    """Schedules. An unknown name raises InvalidValue."""

    def declare(
        self, program: str, version: Sequence[int], schedules: Sequence[NewSchedule]
    ) -> Op[DeclareResult]: ...

    def create(self, schedule: NewSchedule, by: By) -> Op[ScheduleRow]: ...
    def update(self, schedule: NewSchedule, by: By) -> Op[ScheduleRow]: ...
    def set_policy(self, name: str, change: PolicyChange, by: By) -> Op[ScheduleRow]: ...
    def pause(self, name: str, by: By, *, until: datetime | None = None) -> Op[ScheduleRow]: ...
    def resume(self, name: str, by: By) -> Op[ScheduleRow]: ...
    def delete(self, name: str, by: By) -> Op[ScheduleRow]: ...
    def run(self, name: str, by: By, *, key: str | None = None) -> Op[EnqueueResult]: ...
    def get(self, name: str, *, lock: bool = False) -> Op[ScheduleRow | None]: ...

    def list(
        self, *, after: str = "", count: int = 100, granted: Sequence[str] | None = None
    ) -> Op[Sequence[ScheduleRow]]: ...


class TickStore(Protocol):
    def fire(
        self, *, count: int = 100, floor: datetime | None = None, unread: Collection[str] = ()
    ) -> Op[FireResult]: ...

    def list(
        self, name: str, *, before: datetime | None = None, count: int = 50
    ) -> Op[Sequence[TickRow]]: ...


class OperationStore(Protocol):
    """Operations and their items. An unknown id raises InvalidValue."""

    def start(self, new: NewOperation, by: By, *, keep: bool = True) -> Op[OperationRow]: ...

    def start_backfill(
        self, new: NewBackfill, by: By, *, keep: bool = True
    ) -> Op[OperationRow]: ...

    def next_due(self) -> Op[tuple[datetime | None, datetime]]: ...
    def run_chunk(self) -> Op[int]: ...

    def steer(self, operation_id: int, wanted: OperationState, by: By) -> Op[OperationRow]: ...

    def get(self, operation_id: int) -> Op[OperationRow | None]: ...
    def list(
        self,
        *,
        before: int | None = None,
        count: int = 50,
        granted: Sequence[str] | None = None,
    ) -> Op[Sequence[OperationRow]]: ...
    def items(
        self,
        operation_id: int,
        *,
        outcome: ItemOutcome | None = None,
        after: int = 0,
        count: int = 100,
    ) -> Op[tuple[Sequence[OperationItem], int | None]]: ...

    def of_job(self, job_id: JobId, *, count: int = 100) -> Op[Sequence[Membership]]: ...


class ErasureStore(Protocol):
    """Erasures: operations that leave nothing of the jobs they name."""

    def start(self, new: NewErasure, by: By) -> Op[Erasure]: ...


class NoticeStore(Protocol):
    def add(self, rule: NewNoticeRule, by: By) -> Op[NoticeRule]: ...
    def list(self, names: Sequence[str] | None = None) -> Op[Sequence[NoticeRule]]: ...
    def remove(self, names: Sequence[str], by: By) -> Op[Sequence[bool]]: ...
    def test(self, name: str, by: By) -> Op[JobId | None]: ...
    def declare(
        self, program: str, version: Sequence[int], rules: Sequence[NewNoticeRule]
    ) -> Op[DeclaredNoticeRules]: ...
    def error(self, ids: Sequence[int]) -> Op[DeadLetterError | None]: ...
    def report(self, event: NoticeEvent, facts: Sequence[Mapping[str, Json]]) -> Op[int]: ...
    def report_lost_workers(self, silent_for: timedelta) -> Op[int]: ...


class TokenStore(Protocol):
    """Access tokens, and the responses to requests with an idempotency key."""

    def create(self, new: NewToken, by: By) -> Op[TokenRow]: ...
    def find(self, digest: str) -> Op[KnownToken | None]: ...
    def set_quotas(self, token_id: int, quotas: Mapping[str, float], by: By) -> Op[bool]: ...
    def touch(self, ids: Sequence[int]) -> Op[int]: ...
    def list(
        self,
        *,
        before: int | None = None,
        count: int = 100,
        active: bool = False,
        parent: int | None = None,
    ) -> Op[Sequence[TokenRow]]: ...
    def revoke(
        self, ids: Sequence[int], by: By, *, children: bool = True, parent: int | None = None
    ) -> Op[Sequence[bool]]: ...
    def once(self, actor: str, key: str, digest: str, op: Op[Json]) -> Op[tuple[Json, bool]]: ...


class SignInStore(Protocol):
    """Dashboard sessions and one-time sign-in codes."""

    def open(self, new: NewSession, by: By) -> Op[SessionRow]: ...
    def find(self, digest: str) -> Op[tuple[SessionRow, str | None] | None]: ...
    def touch(self, session_id: int) -> Op[bool]: ...
    def list(
        self,
        *,
        before: int | None = None,
        count: int = 100,
        active: bool = False,
        token: int | None = None,
        session: int | None = None,
    ) -> Op[Sequence[SessionRow]]: ...
    def end(
        self, ids: Sequence[int], by: By, *, action: str, token: int | None = None
    ) -> Op[Sequence[bool]]: ...
    def create_code(
        self, digest: str, token: int, lifetime: timedelta, by: By
    ) -> Op[datetime | None]: ...
    def use_code(self, digest: str) -> Op[str | None]: ...


class StatsStore(Protocol):
    """Statistics and counts. None of them reads an unbounded set."""

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
    def totals(self, since: datetime | None = None) -> Op[Totals]: ...

    def depths(self, *, most: int = COUNTED) -> Op[Sequence[Depth]]: ...
    def usage(self, queues: Sequence[str], *, most: int) -> Op[QueueUsage]: ...
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
    """Figures for the overview. None of them reads an unbounded set."""

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
    """Facts for people and for `tenure doctor`. None of these queries reads an unbounded set."""

    def leases(
        self,
        *,
        worker: WorkerId | None = None,
        queue: str | None = None,
        count: int = 100,
        granted: Sequence[str] | None = None,
    ) -> Op[Sequence[LeaseRow]]: ...
    def throughput(self, queues: Sequence[str], *, minutes: int = 30) -> Op[Throughput]: ...
    def recent_runs(
        self, names: Sequence[str], *, count: int = 20
    ) -> Op[Mapping[str, RecentRuns]]: ...
    def system(self) -> Op[System]: ...
    def server_info(self) -> Op[ServerInfo]: ...
    def rights(self, role: str) -> Op[Sequence[str]]: ...
    def excess_rights(self) -> Op[Mapping[str, Sequence[str]]]: ...
    def role_settings(self) -> Op[Sequence[RoleSetting]]: ...
    def schema_drift(self) -> Op[Sequence[SchemaDrift]]: ...
    def overdue_maintenance(self) -> Op[OverdueMaintenance]: ...
    def notify_queue(self) -> Op[NotifyQueue]: ...
    def locked(
        self, queues: Sequence[str], older_than: timedelta, *, count: int
    ) -> Op[Sequence[LockedJob]]: ...
    def vacuum_issues(self) -> Op[VacuumIssues]: ...


class MaintenanceStore(Protocol):
    def maintain(self) -> Op[MaintenanceReport]: ...

    def clear(self) -> Op[None]: ...


class SchemaStore(Protocol):
    def version(self) -> Op[tuple[int, int | None]]: ...
    def check(self) -> Op[None]: ...
    def migrate(self, *, to: int | None = None) -> Op[Sequence[str]]: ...


@dataclass(frozen=True)
class Store:
    """A store's operations, grouped by topic.

    Each method returns an operation for a runner to run.
    """

    jobs: JobStore
    job_queries: JobSearchStore
    job_commands: JobCommandStore
    job_edits: JobEditStore
    leases: LeaseStore
    settlement: SettlementStore
    queues: QueueStore
    settings: SettingStore
    workers: WorkerStore
    audit: AuditStore
    schedules: ScheduleStore
    ticks: TickStore
    operations: OperationStore
    erasures: ErasureStore
    notices: NoticeStore
    tokens: TokenStore
    sign_ins: SignInStore
    stats: StatsStore
    overview: OverviewStore
    inspection: InspectionStore
    maintenance: MaintenanceStore
    schema: SchemaStore
