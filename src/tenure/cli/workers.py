"""`tenure workers`: who works, and who is to end."""

from typing import TYPE_CHECKING, Annotated

import typer

from tenure.cli.errors import CommandError, Exit
from tenure.cli.options import (
    AsJson,
    Commands,
    DatabaseUrl,
    Reason,
    SchemaName,
    Who,
    actor,
    connect_admin,
)
from tenure.cli.output import print_fields, print_json, print_note, print_table

if TYPE_CHECKING:
    from tenure.admin import Admin
    from tenure.types import WorkerRow

app: typer.Typer = typer.Typer(
    cls=Commands,
    name="workers",
    help="Workers: look at them, ask one to take no new job and to end.",
)
_NAMED = 5
WorkerName = Annotated[
    str,
    typer.Argument(metavar="WORKER", help="The worker's name, its id, or how its id begins."),
]


@app.command("list")
def list_workers(
    *,
    every: Annotated[
        bool, typer.Option("--all", help="Also those that have said that they end.")
    ] = False,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    schema: SchemaName = None,
) -> int:
    """Show workers, those that are live first, with what each runs and when it was heard of."""
    from tenure.admin import live
    from tenure.types import WorkerState

    with connect_admin(database_url, schema) as admin:
        known = admin.workers()
    offline = [row for row in known if row.state is WorkerState.OFFLINE]
    there = [row for row in known if row not in offline]
    rows = sorted(there, key=lambda row: not live([row])) + (offline if every else [])
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
    left = 0 if every else len(offline)
    print_note(f"{len(rows)} shown; {f'{left} that ended, too: --all' if left else 'no more'}")
    return Exit.DONE


@app.command("show")
def show(
    worker: WorkerName,
    *,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    schema: SchemaName = None,
) -> int:
    """Show one worker."""
    with connect_admin(database_url, schema) as admin:
        row = _meant(admin, worker)
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
    worker: WorkerName,
    *,
    reason: Reason = None,
    who: Who = None,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    schema: SchemaName = None,
) -> int:
    """Ask a worker to take no new job and to end; it learns of it with its next beat."""
    with connect_admin(database_url, schema) as admin:
        row = _meant(admin, worker)
        if not admin.drain(row.id, actor(who, reason)):
            raise _unknown(worker)
    if as_json:
        print_json({"drain_requested": row.id})
    print_note(f"worker {row.name} is asked to end; to see it: tenure workers show {row.id}")
    return Exit.DONE


def _ago(row: "WorkerRow") -> str:
    return f"{row.beat_age.total_seconds():.0f} s ago"


def _meant(admin: "Admin", worker: str) -> "WorkerRow":
    """The one worker of this name or id, or whose id begins so. A name may have had others before,
    and a worker's own name stands for its child if it has one."""
    from tenure.types import WorkerState

    rows = admin.workers()
    for named in (
        [row for row in rows if worker in (row.name, str(row.id))],
        [row for row in rows if row.name.rpartition("/")[0] == worker],
        [row for row in rows if worker and str(row.id).startswith(worker.lower())],
    ):
        there = [row for row in named if row.state is not WorkerState.OFFLINE]
        if len(found := there or named) == 1:
            return found[0]
        if found:
            names = ", ".join(f"{row.name} ({row.id})" for row in found[:_NAMED])
            raise CommandError(
                f"it is not clear which worker {worker} is",
                f"there are {len(found)}: {names}{', …' if len(found) > _NAMED else ''}",
                "say the id of one",
                Exit.USAGE,
            )
    raise _unknown(worker)


def _unknown(worker: str) -> CommandError:
    return CommandError(
        f"there is no worker {worker}",
        "it never was, or it ended long ago and is forgotten",
        "see which there are: tenure workers list --all",
        Exit.NOT_FOUND,
    )
