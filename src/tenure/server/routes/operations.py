"""Operations: one action on many jobs, started, steered and looked at."""

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Query

from tenure import _actions
from tenure._actions import Action
from tenure.admin import Admin, Changes, Filter, parse_selector, selected
from tenure.server import serializers
from tenure.server.auth import Caller, Operator, Reader
from tenure.server.dependencies import AdminDep, PageSize, PageToken, ReasonBody, read_id
from tenure.server.problems import ProblemError
from tenure.server.schemas import operations as shapes
from tenure.types import EVERY_QUEUE, ItemOutcome, OperationRow, Scope

router: APIRouter = APIRouter(prefix="/v1/operations", tags=["operations"])


@router.post("", status_code=201)
async def start(
    asked: shapes.OperationIn, caller: Operator, admin: AdminDep
) -> shapes.OperationOut:
    """Freeze which jobs match, and have workers do this to them at a rate. Without a queue it is
    for the whole installation, and needs the scope for every queue. A filter is an object, or a
    selector."""
    wanted = _wanted(asked.filter, caller)
    caller.must(Scope.OPERATE, wanted.queue or EVERY_QUEUE)
    changes = None if asked.changes is None else Changes(**asked.changes.model_dump())
    if changes is not None and changes.queue is not None:
        caller.must(Scope.OPERATE, changes.queue)
    row = await admin.operations.astart(
        asked.kind,
        wanted,
        caller.by(asked.reason),
        changes=changes,
        rate=asked.rate,
        dry_run=asked.dry_run,
    )
    return serializers.operation(row)


def _wanted(said: shapes.FilterIn | str, caller: Caller) -> Filter:
    if isinstance(said, str):
        selector = parse_selector(said)
        caller.must_for(Scope.OPERATE, selector)
        return selected(selector)
    wanted = Filter(**said.model_dump(exclude={"ids"}))
    if said.ids is None:
        return wanted
    caller.must(Scope.OPERATE, EVERY_QUEUE)
    return replace(wanted, ids=[read_id(one) for one in said.ids])


@router.get("")
async def list_operations(
    caller: Reader, admin: AdminDep, page_size: PageSize = 50, page_token: PageToken = None
) -> shapes.OperationListOut:
    """Operations, newest first; those of queues that you may see."""
    before = None if page_token is None else read_id(page_token)
    rows = await admin.operations.alist(before=before, count=page_size)
    more = str(rows[-1].id) if len(rows) == page_size else None
    seen = [serializers.operation(row) for row in rows if caller.may(Scope.READ, _queue(row))]
    return shapes.OperationListOut(operations=seen, next_page_token=more)


@router.get("/{operation_id}")
async def show(operation_id: str, caller: Reader, admin: AdminDep) -> shapes.OperationOut:
    """An operation as it is now."""
    return serializers.operation(await _seen(admin, operation_id, caller, Scope.READ))


@router.get("/{operation_id}/items")
async def items(
    operation_id: str,
    caller: Reader,
    admin: AdminDep,
    outcome: Annotated[ItemOutcome | None, Query()] = None,
    page_size: PageSize = 100,
    page_token: PageToken = None,
) -> shapes.ItemPageOut:
    """The members in their order, with what became of each."""
    row = await _seen(admin, operation_id, caller, Scope.READ)
    after = 0 if page_token is None else read_id(page_token)
    page = await admin.operations.aitems(row.id, outcome=outcome, after=after, count=page_size)
    return shapes.ItemPageOut(
        items=[shapes.ItemOut.of(one) for one in page.items],
        next_page_token=None if page.next is None else str(page.next),
    )


async def act(
    action: Action, operation_id: str, caller: Caller, admin: Admin, reason: str | None
) -> OperationRow:
    """Pause, resume or abort an operation that the caller may operate."""
    row = await _seen(admin, operation_id, caller, Scope(action.scope))
    command = getattr(admin.operations, f"a{action.name}")
    changed: OperationRow = await command(row.id, caller.by(reason))
    return changed


def _add_route(action: Action) -> None:
    async def route(
        operation_id: str, caller: Operator, admin: AdminDep, why: ReasonBody
    ) -> shapes.OperationOut:
        return serializers.operation(await act(action, operation_id, caller, admin, why.reason))

    path = f"/{{operation_id}}:{action.name}"
    router.post(path, name=action.name, description=action.summary)(route)


for _action in _actions.OPERATION_ACTIONS.values():
    _add_route(_action)


async def _seen(admin: Admin, operation_id: str, caller: Caller, scope: Scope) -> OperationRow:
    row = await admin.operations.aget(read_id(operation_id))
    if row is None or not caller.may(scope, _queue(row)):
        raise ProblemError("not-found", "there is no such operation, or none that you may see")
    return row


def _queue(row: OperationRow) -> str:
    return row.filter.queue or EVERY_QUEUE
