"""Batch operations: change many jobs at once, in the background."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from tenure._model.audit import By
from tenure._model.operation import (
    Changes,
    Filter,
    ItemOutcome,
    Membership,
    NewOperation,
    OperationItem,
    OperationKind,
    OperationRow,
    OperationState,
)
from tenure._model.selector import Selector
from tenure._rules import access, idempotency
from tenure._rules.operations import DEFAULT_RATE, selected
from tenure._store.steps import Op
from tenure.admin._commands import (
    AdminCommand,
    AsyncTwin,
    CommandGroup,
    as_dry_run,
    check_page_size,
)
from tenure.admin.search import check_hidden, checked
from tenure.errors import InvalidValue

KindWord: TypeAlias = OperationKind | Literal["retry", "cancel", "discard", "delete", "move"]


@dataclass(frozen=True, slots=True)
class ItemList:
    """A page of an operation's items. It may be shorter than requested.

    Attributes:
        items: The items.
        next: Pass it as `after` to get the next page. None on the last page.
    """

    items: Sequence[OperationItem]
    next: int | None


class Operations(CommandGroup):
    """Batch operation commands: `app.admin.operations`. Workers carry out the operations."""

    @AdminCommand
    def start(
        self,
        kind: KindWord,
        filter: Filter | Selector | str,  # noqa: A002 - its name in every interface
        by: By,
        *,
        changes: Changes | None = None,
        rate: int = DEFAULT_RATE,
        dry_run: bool = False,
    ) -> Op[OperationRow]:
        """Start an operation on all jobs that currently match, up to 1,000,000.

        Args:
            kind: `"retry"`, `"cancel"`, `"discard"`, `"delete"` or `"move"`.
            filter: Which jobs: a `Filter`, a `Selector`, or a selector string.
            by: Who is doing this and why, for the audit log.
            changes: The new queue, priority or time, for `"move"`.
            rate: How many jobs to change per second (default: 500).
            dry_run: Only count the jobs (default: False).

        Returns:
            The operation. Its `total` is the number of jobs.

        Raises:
            InvalidValue: The kind, filter or rate is invalid.
        """
        try:
            known_kind = OperationKind(kind)
        except ValueError:
            raise InvalidValue(
                f"kind must be one of {', '.join(OperationKind)}, got {kind!r}"
            ) from None
        jobs = filter if isinstance(filter, Filter) else selected(checked(filter))
        if jobs.ids is not None:
            jobs = replace(jobs, ids=idempotency.numbers(jobs.ids))
        if jobs.selector is not None:
            yield from check_hidden(self._store, checked(jobs.selector))
        new = NewOperation(kind=known_kind, filter=jobs, rate=rate, changes=changes)
        if dry_run:
            return (yield from as_dry_run(self._store.operations.start(new, by, keep=False)))
        return (yield from self._store.operations.start(new, by))

    astart: Final = AsyncTwin(start)

    @AdminCommand
    def list(
        self,
        *,
        before: int | None = None,
        count: int = 50,
        patterns: Sequence[str] | None = None,
    ) -> Op[Sequence[OperationRow]]:
        """List operations, newest first.

        Args:
            before: Only operations with a smaller id, to get the next page.
            count: The page size, 1 to 1,000 (default: 50).
            patterns: Only queues that match one of these, such as `"mail.*"` (default: all queues).

        Returns:
            The operations.

        Raises:
            InvalidValue: `count` is out of range.
        """
        check_page_size(count)
        granted = access.like_patterns(patterns)
        return self._store.operations.list(before=before, count=count, granted=granted)

    alist: Final = AsyncTwin(list)  # noqa: A003 - the command above

    @AdminCommand
    def get(self, operation_id: int | str) -> Op[OperationRow | None]:
        """Get an operation by id.

        Args:
            operation_id: The operation's id, as a number or a string.

        Returns:
            The operation, or None.
        """
        return self._store.operations.get(_number(operation_id))

    aget: Final = AsyncTwin(get)

    @AdminCommand
    def items(
        self,
        operation_id: int | str,
        *,
        outcome: ItemOutcome | None = None,
        after: int = 0,
        count: int = 100,
    ) -> Op[ItemList]:
        """List an operation's jobs in order, with each job's outcome.

        One call searches a limited number of rows, so a page may be shorter than `count`.

        Args:
            operation_id: The operation's id, as a number or a string.
            outcome: Only items with this outcome.
            after: The previous page's `next`.
            count: The page size, 1 to 1,000 (default: 100).

        Returns:
            A page of items.

        Raises:
            InvalidValue: `count` is out of range.
        """
        check_page_size(count)
        only = None if outcome is None else ItemOutcome(outcome)
        items, more = yield from self._store.operations.items(
            _number(operation_id), outcome=only, after=after, count=count
        )
        return ItemList(items, more)

    aitems: Final = AsyncTwin(items)

    @AdminCommand
    def of(self, job_id: int | str, *, count: int = 100) -> Op[Sequence[Membership]]:
        """List the operations that include a job, newest first, with the job's outcome.

        A job's audit log doesn't include operations.

        Args:
            job_id: The job's id, as a number or a string.
            count: The page size, 1 to 1,000 (default: 100).

        Returns:
            The operations.

        Raises:
            InvalidValue: `count` is out of range.
        """
        check_page_size(count)
        return self._store.operations.of_job(idempotency.job_id(job_id), count=count)

    aof: Final = AsyncTwin(of)

    @AdminCommand
    def pause(self, operation_id: int | str, by: By) -> Op[OperationRow]:
        """Pause an operation. Finished items stay finished.

        Args:
            operation_id: The operation's id, as a number or a string.
            by: Who is doing this and why, for the audit log.

        Returns:
            The operation.
        """
        return self._store.operations.steer(_number(operation_id), OperationState.PAUSED, by)

    apause: Final = AsyncTwin(pause)

    @AdminCommand
    def resume(self, operation_id: int | str, by: By) -> Op[OperationRow]:
        """Resume a paused operation where it left off.

        Args:
            operation_id: The operation's id, as a number or a string.
            by: Who is doing this and why, for the audit log.

        Returns:
            The operation.
        """
        return self._store.operations.steer(_number(operation_id), OperationState.RUNNING, by)

    aresume: Final = AsyncTwin(resume)

    @AdminCommand
    def abort(self, operation_id: int | str, by: By) -> Op[OperationRow]:
        """End an operation. It changes no more jobs once this returns.

        Args:
            operation_id: The operation's id, as a number or a string.
            by: Who is doing this and why, for the audit log.

        Returns:
            The operation.
        """
        return self._store.operations.steer(_number(operation_id), OperationState.ABORTED, by)

    aabort: Final = AsyncTwin(abort)


def _number(operation_id: int | str) -> int:
    return idempotency.number(operation_id, "operation")
