"""Operation routes: one action on many jobs."""

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Query

from tenure import _actions
from tenure._actions import Action
from tenure.admin import Admin, Changes, Filter, parse_selector, selected
from tenure.server import serializers
from tenure.server.auth import Administrator, Caller, Operator, Reader
from tenure.server.dependencies import AdminDep, PageSize, PageToken, ReasonBody, read_id
from tenure.server.page_tokens import seal, unseal
from tenure.server.problems import ProblemError
from tenure.server.schemas import operations as shapes
from tenure.types import EVERY_QUEUE, ItemOutcome, OperationRow, Scope

router: APIRouter = APIRouter(prefix="/v1/operations", tags=["operations"])


@router.post("", status_code=201)
async def start(body: shapes.OperationIn, caller: Operator, admin: AdminDep) -> shapes.OperationOut:
    """Apply one action to all jobs that match a filter. Workers process the jobs at the given rate.
    Jobs that start to match later aren't affected. If the filter doesn't name a queue, you need the
    scope for all queues.
    """
    wanted = _wanted(body.filter, caller)
    caller.must(Scope.OPERATE, wanted.queue or EVERY_QUEUE)
    changes = None if body.changes is None else Changes(**body.changes.model_dump())
    if changes is not None and changes.queue is not None:
        caller.must(Scope.OPERATE, changes.queue)
    row = await admin.operations.astart(
        body.kind,
        wanted,
        caller.by(body.reason),
        changes=changes,
        rate=body.rate,
        dry_run=body.dry_run,
    )
    return serializers.operation(row)


@router.post(":erase", status_code=201, name="erase", description=_actions.ERASE.summary)
async def erase(
    body: shapes.ErasureIn, caller: Administrator, admin: AdminDep
) -> shapes.ErasureOut:
    caller.must(Scope.ADMIN, EVERY_QUEUE)
    started = await admin.aerase(
        body.filter, caller.by(body.reason), rate=body.rate, dry_run=body.dry_run
    )
    return shapes.ErasureOut(
        operation=serializers.operation(started.operation), rows=dict(started.rows)
    )


def _wanted(given: shapes.FilterIn | str, caller: Caller) -> Filter:
    if isinstance(given, str):
        selector = parse_selector(given)
        caller.must_for(Scope.OPERATE, selector)
        return selected(selector)
    wanted = Filter(**given.model_dump(exclude={"ids"}))
    if wanted.signature is not None:
        # A match would confirm a guessed error.
        caller.must(Scope.PAYLOAD_READ, wanted.queue or EVERY_QUEUE)
    if given.ids is None:
        return wanted
    caller.must(Scope.OPERATE, EVERY_QUEUE)
    return replace(wanted, ids=[read_id(one) for one in given.ids])


@router.get("")
async def list_operations(
    caller: Reader, admin: AdminDep, page_size: PageSize = 50, page_token: PageToken = None
) -> shapes.OperationListOut:
    """List operations, newest first."""
    place = unseal(caller, page_token, "operations")
    before = None if place is None else read_id(place)
    rows = await admin.operations.alist(before=before, count=page_size, patterns=caller.patterns)
    more = str(rows[-1].id) if len(rows) == page_size else None
    seen = [serializers.operation(row) for row in rows if caller.may(Scope.READ, _queue(row))]
    return shapes.OperationListOut(
        operations=seen, next_page_token=seal(caller, more, "operations")
    )


@router.get("/{operation_id}")
async def show(operation_id: str, caller: Reader, admin: AdminDep) -> shapes.OperationOut:
    """Get an operation."""
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
    """List an operation's jobs with their results."""
    row = await _seen(admin, operation_id, caller, Scope.READ)
    of = "operation", row.id, outcome
    place = unseal(caller, page_token, *of)
    after = 0 if place is None else read_id(place)
    page = await admin.operations.aitems(row.id, outcome=outcome, after=after, count=page_size)
    return shapes.ItemPageOut(
        items=[shapes.ItemOut.of(one) for one in page.items],
        next_page_token=seal(caller, None if page.next is None else str(page.next), *of),
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
        raise ProblemError("not-found", "the operation does not exist, or you may not see it")
    return row


def _queue(row: OperationRow) -> str:
    return row.filter.queue or EVERY_QUEUE
