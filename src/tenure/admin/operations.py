"""What an operator can do to many jobs at once: operations, started, steered and looked at."""

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
from tenure._rules import idempotency
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
    """A page of an operation's items; it may come short. `next` is None at the end alone."""

    items: Sequence[OperationItem]
    next: int | None


class Operations(CommandGroup):
    """The verbs over operations: `app.admin.operations`. Workers do what is started here."""

    @AdminCommand
    def start(
        self,
        kind: KindWord,
        filter: Filter | Selector | str,  # noqa: A002 - what it is called everywhere
        by: By,
        *,
        changes: Changes | None = None,
        rate: int = DEFAULT_RATE,
        dry_run: bool = False,
    ) -> Op[OperationRow]:
        """Freeze which jobs match a filter or a selector, at most 1,000,000, and have workers
        retry, cancel, discard, delete or move them, `rate` a second. The answer's `total` says how
        many they are; in a dry run that is all, and nobody has the answer's id."""
        try:
            wanted = OperationKind(kind)
        except ValueError:
            raise InvalidValue(
                f"there is no operation {kind!r}; there are: {', '.join(OperationKind)}"
            ) from None
        said = filter if isinstance(filter, Filter) else selected(checked(filter))
        if said.ids is not None:
            said = replace(said, ids=idempotency.numbers(said.ids))
        if said.selector is not None:
            yield from check_hidden(self._store, checked(said.selector))
        new = NewOperation(kind=wanted, filter=said, rate=rate, changes=changes)
        if dry_run:
            return (yield from as_dry_run(self._store.operations.start(new, by, keep=False)))
        return (yield from self._store.operations.start(new, by))

    astart: Final = AsyncTwin(start)

    @AdminCommand
    def list(self, *, before: int | None = None, count: int = 50) -> Op[Sequence[OperationRow]]:
        """Operations, newest first, below an id."""
        check_page_size(count)
        return self._store.operations.list(before=before, count=count)

    alist: Final = AsyncTwin(list)  # noqa: A003 - the verb above, by its name

    @AdminCommand
    def get(self, operation_id: int | str) -> Op[OperationRow | None]:
        """The operation of this id, or None."""
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
        """The members in their order, with what became of each; `after` is the last page's `next`.
        What is searched per page is bounded, so that a page may come short."""
        check_page_size(count)
        said = None if outcome is None else ItemOutcome(outcome)
        items, more = yield from self._store.operations.items(
            _number(operation_id), outcome=said, after=after, count=count
        )
        return ItemList(items, more)

    aitems: Final = AsyncTwin(items)

    @AdminCommand
    def of(self, job_id: int | str, *, count: int = 100) -> Op[Sequence[Membership]]:
        """The operations that a job is or was a member of, newest first, with what became of it:
        what operations did is not in the audit of each job."""
        check_page_size(count)
        return self._store.operations.of_job(idempotency.job_id(job_id), count=count)

    aof: Final = AsyncTwin(of)

    @AdminCommand
    def pause(self, operation_id: int | str, by: By) -> Op[OperationRow]:
        """Let no more be done until it is resumed; what is done stays done."""
        return self._store.operations.steer(_number(operation_id), OperationState.PAUSED, by)

    apause: Final = AsyncTwin(pause)

    @AdminCommand
    def resume(self, operation_id: int | str, by: By) -> Op[OperationRow]:
        """Let a paused operation go on where it was."""
        return self._store.operations.steer(_number(operation_id), OperationState.RUNNING, by)

    aresume: Final = AsyncTwin(resume)

    @AdminCommand
    def abort(self, operation_id: int | str, by: By) -> Op[OperationRow]:
        """End an operation: once this has answered, nothing more of it is done."""
        return self._store.operations.steer(_number(operation_id), OperationState.ABORTED, by)

    aabort: Final = AsyncTwin(abort)


def _number(operation_id: int | str) -> int:
    return idempotency.number(operation_id, "operation")
