"""What every store can do with operations. A part of the port."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from tenure._model.audit import By
    from tenure._model.ids import JobId
    from tenure._model.operation import (
        ItemOutcome,
        Membership,
        NewBackfill,
        NewOperation,
        OperationItem,
        OperationRow,
        OperationState,
    )
    from tenure._store.port import Op


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

    def advance(self) -> Op[int]:
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
