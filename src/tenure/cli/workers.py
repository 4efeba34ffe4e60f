"""`tenure workers`: who works, and who is to end."""

from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from tenure.cli.data import print_fields, print_json, print_table
from tenure.cli.exits import Exit
from tenure.cli.failure import Failure
from tenure.cli.options import AsJson, DatabaseUrl, Reason, SchemaName, Who, by, opened
from tenure.cli.words import say

if TYPE_CHECKING:
    from tenure.admin import WorkerRow

app: typer.Typer = typer.Typer(
    name="workers", help="Workers: look at them, ask one to take no new job and to end."
)
WorkerNumber = Annotated[UUID, typer.Argument(metavar="ID", help="The worker's id.")]


@app.command("list")
def list_workers(
    *, as_json: AsJson = False, database_url: DatabaseUrl = None, schema: SchemaName = None
) -> int:
    """Show all known workers, with what each runs and when it was last heard of."""
    with opened(database_url, schema) as admin:
        rows = admin.workers()
    if as_json:
        print_json({"workers": rows})
    elif rows:
        print_table(
            ("id", "name", "host", "pid", "state", "queues", "running", "slots", "heard of"),
            [
                (
                    row.id,
                    row.name,
                    row.host,
                    row.pid,
                    row.state,
                    ",".join(row.queues),
                    row.running,
                    row.slots,
                    _ago(row),
                )
                for row in rows
            ],
        )
    say(f"{len(rows)} shown; no more")
    return Exit.DONE


@app.command("show")
def show(
    worker_id: WorkerNumber,
    *,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    schema: SchemaName = None,
) -> int:
    """Show one worker."""
    with opened(database_url, schema) as admin:
        row = next((row for row in admin.workers() if row.id == worker_id), None)
    if row is None:
        raise _unknown(worker_id)
    if as_json:
        print_json({"worker": row})
        return Exit.DONE
    print_fields(
        {
            "worker": row.id,
            "name": row.name,
            "host": row.host,
            "pid": row.pid,
            "version": row.version,
            "language": row.language,
            "queues": ",".join(row.queues),
            "state": row.state,
            "running": f"{row.running} of {row.slots}",
            "asked to end": "yes" if row.drain_requested else None,
            "started": row.started_at,
            "heard of": _ago(row),
        }
    )
    return Exit.DONE


@app.command("drain")
def drain(
    worker_id: WorkerNumber,
    *,
    reason: Reason = None,
    who: Who = None,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    schema: SchemaName = None,
) -> int:
    """Ask a worker to take no new job and to end; it learns of it with its next beat."""
    with opened(database_url, schema) as admin:
        if not admin.drain(worker_id, by(who, reason)):
            raise _unknown(worker_id)
    if as_json:
        print_json({"drain_requested": worker_id})
    say(f"worker {worker_id} is asked to end; to see it: tenure workers show {worker_id}")
    return Exit.DONE


def _ago(row: "WorkerRow") -> str:
    return f"{row.beat_age.total_seconds():.0f} s ago"


def _unknown(worker_id: UUID) -> Failure:
    return Failure(
        f"there is no worker {worker_id}",
        "it never was, or it ended long ago and is forgotten",
        "see which there are: tenure workers list",
        Exit.NOT_FOUND,
    )
