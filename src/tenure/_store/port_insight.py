"""What a store can report: tokens, stats, overview, diagnostics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from tenure._model.stats import COUNTED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime, timedelta

    from tenure._model.access import NewToken, TokenRow
    from tenure._model.audit import AuditPage, By
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
    from tenure._model.lease import LeaseRow
    from tenure._model.overview import (
        Completion,
        DayCounts,
        HorizonHolder,
        HourlyFailures,
        LateSchedule,
        System,
    )
    from tenure._model.schedule import RecentRuns
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
    from tenure._store.steps import Op


class AccessStore(Protocol):
    """Access tokens, and the answers to requests with an idempotency key."""

    def create_token(self, new: NewToken, by: By) -> Op[TokenRow]:
        """Make an access token known by the digest of its secret."""

    def find_token(self, digest: str) -> Op[TokenRow | None]:
        """The access token whose secret has this digest, in whatever state, or None."""

    def touch_tokens(self, ids: Sequence[int]) -> Op[int]:
        """Note that access tokens were used, each at most once a minute; never waits."""

    def tokens(
        self, *, before: int | None = None, count: int = 100, active: bool = False
    ) -> Op[Sequence[TokenRow]]:
        """Access tokens, newest first, below an id; the active ones alone, if so asked."""

    def revoke_tokens(self, ids: Sequence[int], by: By) -> Op[Sequence[bool]]:
        """Let access tokens in no more; False for one that is not there, or was revoked before."""

    def once(self, actor: str, key: str, digest: str, op: Op[Json]) -> Op[tuple[Json, bool]]:
        """Perform an operation once for an actor's idempotency key, in one transaction with its
        answer, which must be JSON. The same digest again within a day has the first answer, and
        True; another one is an IdempotencyConflict. Two at once: the second waits."""


class StatsStore(Protocol):
    """Counts of what has ended and of what is there. None goes through an unbounded set."""

    def roll_up(self) -> Op[int]:
        """Fold the next closed minute, and one again that is whole by now; answers with how many
        minutes that were, 0 if there was none or another folder is at it."""

    def stats(
        self,
        *,
        queue: str | None = None,
        task: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        step: timedelta,
    ) -> Op[Stats]:
        """What ended over a time, from the counts per minute."""

    def totals(self, since: datetime | None = None) -> Op[Totals]:
        """What ended from an instant on, by queue and task, from the counts per minute; without
        one, the last hour, which tells from when on to ask."""

    def lateness(self) -> Op[LateWork]:
        """What should have been done and was not, and what became of the last hour's ticks."""

    def storage(self) -> Op[Storage]:
        """How large our tables are, their dead rows, and what keeps those from being removed."""

    def depths(self, *, most: int = COUNTED) -> Op[Sequence[Depth]]:
        """How much there is in each known queue, by name, up to so much; the empty ones too."""

    def failed_groups(
        self,
        *,
        queue: str | None = None,
        task: str | None = None,
        count: int,
        after: tuple[str, str | None] | None = None,
    ) -> Op[Sequence[FailedGroup]]:
        """Dead letters by task and error signature, in this order, above one of them. Of one queue,
        among the 10,000 of its dead letters that are found first."""

    def facts(self, job_id: JobId) -> Op[JobContext | None]:
        """What decides where a job stands now; None if there is no such job."""


class OverviewStore(Protocol):
    """Figures for whoever looks at all of it at once. None goes through an unbounded set."""

    def pulse(self) -> Op[DayCounts]:
        """The counts of a day and of the moment."""

    def retrying(self, queues: Sequence[str]) -> Op[Count]:
        """How many jobs of these queues wait for another attempt, of some of each."""

    def hours(
        self, queues: Sequence[str]
    ) -> Op[Mapping[str, tuple[HourlyFailures, HourlyFailures]]]:
        """What ended of each queue in the last hour, and in the one before it."""

    def completions(self, *, count: int) -> Op[Sequence[Completion]]:
        """What was completed last, newest first."""

    def holders(self, *, count: int) -> Op[Sequence[HorizonHolder]]:
        """Who keeps dead rows from being removed, the oldest first."""

    def late_schedules(self, older_than: timedelta, *, count: int) -> Op[Sequence[LateSchedule]]:
        """Schedules that have been due for longer than this, the longest first."""


class ServerInfoStore(Protocol):
    """How the server, the schema and this session's rights are."""

    def server_info(self) -> Op[ServerInfo]:
        """What an operator should know of the server: version, role, settings, its clock."""

    def rights(self, role: str) -> Op[Sequence[str]]:
        """The statements that grant this role what its programs need and it does not have."""

    def schema_drift(self) -> Op[Sequence[SchemaDrift]]:
        """Where the schema is not as this release has it."""

    def overdue_maintenance(self) -> Op[OverdueMaintenance]:
        """What upkeep should have done by now."""

    def notify_queue(self) -> Op[NotifyQueue]:
        """How full the server's queue of notifications is."""

    def locked(
        self, queues: Sequence[str], older_than: timedelta, *, count: int
    ) -> Op[Sequence[LockedJob]]:
        """Jobs of these queues that have been due for longer than this and that claims pass over,
        because a transaction as old has their row locked."""

    def vacuum_issues(self) -> Op[VacuumIssues]:
        """Which of our tables are not vacuumed as they should be."""


class InspectionStore(Protocol):
    """What people look at. None of it goes through an unbounded set."""

    def leases(
        self, *, worker: WorkerId | None = None, queue: str | None = None, count: int = 100
    ) -> Op[Sequence[LeaseRow]]:
        """Leases of running jobs, those that end first before others."""

    def throughput(self, queues: Sequence[str], *, minutes: int = 30) -> Op[Throughput]:
        """What ended in each of these queues over the last minutes, from the counts per minute."""

    def recent_runs(self, names: Sequence[str], *, count: int = 20) -> Op[Mapping[str, RecentRuns]]:
        """What each of these schedules came to."""

    def search_audit(
        self,
        *,
        target: str | None = None,
        actor: str | None = None,
        source: str | None = None,
        action: str | None = None,
        enqueued: bool = True,
        count: int = 100,
        before: int | None = None,
    ) -> Op[AuditPage]:
        """What was done, newest first, below an id. What is searched is bounded."""

    def system(self) -> Op[System]:
        """What the installation stands on."""
