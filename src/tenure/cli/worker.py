"""`tenure worker`: run, list, show and drain workers."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tenure import _actions
from tenure.cli import processes
from tenure.cli.errors import CommandError, Exit
from tenure.cli.help import HelpGroup
from tenure.cli.options import CommandContext, operator_command, plain_command
from tenure.cli.output import print_fields, print_json, print_note, print_rows

if TYPE_CHECKING:
    from tenure.admin import Admin
    from tenure.types import WorkerRow


class WorkerCommands(HelpGroup):
    """`tenure worker MODULE:APP` runs a worker: the hidden command `run` is the default."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Run a worker, unless the first argument is another command."""
        if not args or args[0] not in self.commands:
            args = ["run", *args]
        return super().parse_args(ctx, args)


app: typer.Typer = typer.Typer(
    cls=WorkerCommands,
    name="worker",
    help="Run a worker, or list, show and drain workers.",
)
plain_command(app, "run", example="tenure worker jobs:app -q mail,default", hidden=True)(
    processes.worker
)
_NAMED = 5
WorkerName = Annotated[
    str,
    typer.Argument(metavar="WORKER", help="Name of the worker, or the start of its id."),
]


@operator_command(app, "list", example="tenure worker list")
def list_workers(
    ctx: CommandContext,
    *,
    every: Annotated[
        bool, typer.Option("--all", help="Include workers that have stopped.")
    ] = False,
) -> int:
    """List workers, live ones first.

    A worker without a recent heartbeat is `stale`: it was killed or can't reach the database.
    Stopped workers are kept for a week.

    JSON: `workers`, each with its `health`. `state` is what the worker last reported.
    """
    from tenure.admin import health, live
    from tenure.types import WorkerState

    known = ctx.admin.workers.list()
    offline = [row for row in known if row.state is WorkerState.OFFLINE]
    running = [row for row in known if row not in offline]
    rows = sorted(running, key=lambda row: not live([row])) + (offline if every else [])
    if ctx.as_json:
        print_json({"workers": [_data(row) for row in rows]})
    elif rows:
        print_rows(
            rows,
            *("id", "name", "host", "pid", ("state", health)),
            ("queues", lambda row: ",".join(row.queues)),
            *("running", "slots", ("last seen", _ago)),
        )
    left = 0 if every else len(offline)
    print_note(f"{len(rows)} shown; {f'{left} stopped: --all' if left else 'no more'}")
    return Exit.DONE


@operator_command(app, "show", example="tenure worker show web-1")
def show(ctx: CommandContext, worker: WorkerName) -> int:
    """Show a worker.

    Exits with 3 if no worker matches, and with 2 if several do.

    JSON: `worker`.
    """
    from tenure.admin import health

    row = _one(ctx.admin, worker)
    if ctx.as_json:
        print_json({"worker": _data(row)})
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
            "state": health(row),
            "running": f"{row.running} of {row.slots}",
            "drain requested": "yes" if row.drain_requested else None,
            "started": row.started_at,
            "last seen": _ago(row),
        }
    )
    return Exit.DONE


@operator_command(app, _actions.DRAIN_WORKER, example="tenure worker drain web-1")
def drain(ctx: CommandContext, worker: WorkerName) -> int:
    """The worker sees the request at its next heartbeat, within seconds. Running jobs have the
    worker's grace period to finish.

    JSON: `drain_requested`, the worker's id.
    """
    row = _one(ctx.admin, worker)
    outcome = _actions.DRAIN_WORKER.outcome(row.name, ctx.admin.workers.drain(row.id, ctx.by))
    if outcome.is_refusal:
        raise _unknown(worker)
    return ctx.done({"drain_requested": row.id}, outcome, f"to see it: tenure worker show {row.id}")


def _ago(row: "WorkerRow") -> str:
    return f"{row.heartbeat_age.total_seconds():.0f} s ago"


def _data(row: "WorkerRow") -> "dict[str, object]":
    from tenure.admin import health, to_json

    return {**to_json(row), "health": health(row)}


def _one(admin: "Admin", worker: str) -> "WorkerRow":
    """Return the one worker with this name, id or id prefix.

    Stopped workers count only if no running worker matches. A worker's name also matches its child,
    if it has only one.
    """
    from tenure.types import WorkerState

    rows = admin.workers.list()
    for named in (
        [row for row in rows if worker in (row.name, str(row.id))],
        [row for row in rows if row.name.rpartition("/")[0] == worker],
        [row for row in rows if worker and str(row.id).startswith(worker.lower())],
    ):
        running = [row for row in named if row.state is not WorkerState.OFFLINE]
        if len(matches := running or named) == 1:
            return matches[0]
        if matches:
            names = ", ".join(f"{row.name} ({row.id})" for row in matches[:_NAMED])
            raise CommandError(
                f"{worker} matches several workers",
                f"there are {len(matches)}: {names}{', …' if len(matches) > _NAMED else ''}",
                "pass the id of one",
                Exit.USAGE,
            )
    raise _unknown(worker)


def _unknown(worker: str) -> CommandError:
    return CommandError(
        f"worker {worker} does not exist",
        "the name is wrong, or it stopped more than a week ago",
        "list the workers: tenure worker list --all",
        Exit.NOT_FOUND,
    )
