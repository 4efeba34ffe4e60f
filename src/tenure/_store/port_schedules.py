"""What a store can do with schedules and operations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from datetime import datetime

    from tenure._model.audit import By
    from tenure._model.ids import JobId
    from tenure._model.job import EnqueueResult
    from tenure._model.operation import (
        ItemOutcome,
        Membership,
        NewBackfill,
        NewOperation,
        OperationItem,
        OperationRow,
        OperationState,
    )
    from tenure._model.schedule import (
        DeclareResult,
        FireResult,
        NewSchedule,
        PolicyChange,
        ScheduleRow,
        TickRow,
    )
    from tenure._store.steps import Op


class ScheduleStore(Protocol):
    """Schedules and their ticks. A name that no schedule has is an InvalidValue."""

    def fire(
        self, *, count: int = 100, floor: datetime | None = None, unread: Collection[str] = ()
    ) -> Op[FireResult]:
        """Account for what is due of up to `count` schedules: each tick makes its job or a row
        that says why not, and the schedule's next time moves on, in one transaction. Any number
        may fire at once; a schedule that another one is at is passed over. What has been due
        since before `floor` is left to a pass without one. A schedule that cannot be read here
        is told and left to others, as are those in `unread`."""

    def declare(
        self, program: str, version: Sequence[int], schedules: Sequence[NewSchedule]
    ) -> Op[DeclareResult]:
        """Bring a program's schedules to what its code says, in one transaction: write those that
        differ, retire those that it no longer has; nothing that a newer version wrote."""

    def create_schedule(self, schedule: NewSchedule, by: By) -> Op[ScheduleRow]:
        """Make a schedule at run time; InvalidValue if there is one of that name."""

    def update_schedule(self, schedule: NewSchedule, by: By) -> Op[ScheduleRow]:
        """Give a schedule that was made at run time another definition; ticks that are due are
        accounted for by the old one first. InvalidValue if code declares it."""

    def set_policy(self, name: str, change: PolicyChange, by: By) -> Op[ScheduleRow]:
        """Set what holds over a schedule's own policy, in the place of what was set before."""

    def pause_schedule(
        self, name: str, by: By, *, until: datetime | None = None
    ) -> Op[ScheduleRow]:
        """Let ticks make no jobs, until then or until resumed; each is recorded as paused."""

    def resume_schedule(self, name: str, by: By) -> Op[ScheduleRow]:
        """Let a paused schedule's ticks make jobs again, from the next one on."""

    def delete_schedule(self, name: str, by: By) -> Op[ScheduleRow]:
        """Remove a schedule; its ticks and jobs stay. InvalidValue if code declares it and it is
        not retired."""

    def run_schedule(self, name: str, by: By, *, key: str | None = None) -> Op[EnqueueResult]:
        """Enqueue a schedule's job now, beside its ticks; the same key makes it once, until a day
        after that job has ended."""

    def schedule(self, name: str, *, lock: bool = False) -> Op[ScheduleRow | None]:
        """The schedule of this name, or None; locked until the transaction's end, if it is to be
        changed from what it is."""

    def schedules(self, *, after: str = "", count: int = 100) -> Op[Sequence[ScheduleRow]]:
        """Schedules by name, above a name."""

    def ticks(
        self, name: str, *, before: datetime | None = None, count: int = 50
    ) -> Op[Sequence[TickRow]]:
        """A schedule's recorded ticks, newest first, before an instant."""


class OperationStore(Protocol):
    """Operations and their items. An id that no operation has is an InvalidValue."""

    def start_operation(self, new: NewOperation, by: By, *, keep: bool = True) -> Op[OperationRow]:
        """Freeze the members of an operation, in one transaction with its row, which says how many
        they are. Without `keep` they are only counted: for a rehearsal."""

    def start_backfill(self, new: NewBackfill, by: By, *, keep: bool = True) -> Op[OperationRow]:
        """Freeze those of a schedule's ticks that have no job, as the members of an operation that
        makes it for each."""

    def next_operation(self) -> Op[tuple[datetime | None, datetime]]:
        """When the next chunk of an operation is due, if any is, and the time now."""

    def run_chunk(self) -> Op[int]:
        """Do one chunk of the operation that has been due the longest: its items, their outcomes
        and its next time in one transaction; answers how many. Any number may advance at once; an
        operation that another one is at is passed over."""

    def steer_operation(
        self, operation_id: int, wanted: OperationState, by: By
    ) -> Op[OperationRow]:
        """Pause, resume (`running`) or abort; once it is answered, no chunk goes on under the old
        state. InvalidValue if it has ended."""

    def operation(self, operation_id: int) -> Op[OperationRow | None]:
        """The operation of this id, or None."""

    def operations(
        self, *, before: int | None = None, count: int = 50
    ) -> Op[Sequence[OperationRow]]:
        """Operations, newest first, below an id."""

    def operation_items(
        self,
        operation_id: int,
        *,
        outcome: ItemOutcome | None = None,
        after: int = 0,
        count: int = 100,
    ) -> Op[tuple[Sequence[OperationItem], int | None]]:
        """An operation's items in their order, behind a place, and where the next page begins,
        None at the end alone. What is searched per page is bounded."""

    def operations_of(self, job_id: JobId, *, count: int = 100) -> Op[Sequence[Membership]]:
        """The operations that a job is or was a member of, newest first."""
