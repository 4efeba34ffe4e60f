"""`tenure operation pause`, `resume` and `abort`."""

from typing import TYPE_CHECKING

from tenure.cli.data import print_json
from tenure.cli.exits import Exit
from tenure.cli.operation import shown
from tenure.cli.operation.shown import OperationNumber
from tenure.cli.options import AsJson, DatabaseUrl, Reason, SchemaName, Who, by, opened
from tenure.cli.words import say

if TYPE_CHECKING:
    from tenure.admin import OperationRow


def pause(
    operation_id: OperationNumber,
    *,
    reason: Reason = None,
    who: Who = None,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    schema: SchemaName = None,
) -> int:
    """Let no more of an operation be done until it is resumed; what is done stays done."""
    with opened(database_url, schema) as admin:
        shown.known(admin, operation_id)
        row = admin.operations.pause(operation_id, by(who, reason))
    return _told(row, f"to go on: tenure operation resume {operation_id}", as_json=as_json)


def resume(
    operation_id: OperationNumber,
    *,
    reason: Reason = None,
    who: Who = None,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    schema: SchemaName = None,
) -> int:
    """Let a paused operation go on where it was."""
    with opened(database_url, schema) as admin:
        shown.known(admin, operation_id)
        row = admin.operations.resume(operation_id, by(who, reason))
    return _told(row, f"to see it: tenure operation show {operation_id}", as_json=as_json)


def abort(
    operation_id: OperationNumber,
    *,
    reason: Reason = None,
    who: Who = None,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    schema: SchemaName = None,
) -> int:
    """End an operation now; what is done stays done, and the rest is never done."""
    with opened(database_url, schema) as admin:
        shown.known(admin, operation_id)
        row = admin.operations.abort(operation_id, by(who, reason))
    return _told(row, "the rest is as it was", as_json=as_json)


def _told(row: "OperationRow", rest: str, *, as_json: bool) -> Exit:
    if as_json:
        print_json({"operation": row})
    say(f"operation {row.id} is {row.state}, {shown.done(row)} done; {rest}")
    return Exit.DONE
