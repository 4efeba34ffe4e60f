"""`tenure worker`: who works, and who is to end."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tenure import _actions
from tenure.cli import processes
from tenure.cli.errors import CommandError, Exit
from tenure.cli.options import CommandContext, Commands, operator_command
from tenure.cli.output import print_fields, print_json, print_note, print_rows

if TYPE_CHECKING:
    from tenure.admin import Admin
    from tenure.types import WorkerRow


class WorkerCommands(Commands):
    """`tenure worker MODULE:APP` runs a worker: what is no other command is an argument of it."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Run a worker, unless the first argument is another command."""
        if not args or args[0] not in self.commands:
            args = ["run", *args]
        return super().parse_args(ctx, args)


app: typer.Typer = typer.Typer(
    cls=WorkerCommands,
    name="worker",
    help="Run jobs until told to stop; or list, show and drain workers.",
)
app.command("run", hidden=True)(processes.worker)
_NAMED = 5
WorkerName = Annotated[
    str,
    typer.Argument(metavar="WORKER", help="The worker's name, its id, or how its id begins."),
]


@operator_command(app, "list")
def list_workers(
    ctx: CommandContext,
    *,
    every: Annotated[
        bool, typer.Option("--all", help="Also those that have said that they end.")
    ] = False,
) -> int:
    """Show workers, those that are live first, with what each runs and when it was heard of."""
    from tenure.admin import live
    from tenure.types import WorkerState

    known = ctx.admin.workers.list()
    offline = [row for row in known if row.state is WorkerState.OFFLINE]
    there = [row for row in known if row not in offline]
    rows = sorted(there, key=lambda row: not live([row])) + (offline if every else [])
    if ctx.as_json:
        print_json({"workers": rows})
    elif rows:
        print_rows(
            rows,
            *("id", "name", "host", "pid", "state"),
            ("queues", lambda row: ",".join(row.queues)),
            *("running", "slots", ("heard of", _ago)),
        )
    left = 0 if every else len(offline)
    print_note(f"{len(rows)} shown; {f'{left} that ended, too: --all' if left else 'no more'}")
    return Exit.DONE


@operator_command(app, "show")
def show(ctx: CommandContext, worker: WorkerName) -> int:
    """Show one worker."""
    row = _meant(ctx.admin, worker)
    if ctx.as_json:
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


@operator_command(app, _actions.DRAIN_WORKER)
def drain(ctx: CommandContext, worker: WorkerName) -> int:
    row = _meant(ctx.admin, worker)
    outcome = _actions.DRAIN_WORKER.outcome(row.name, ctx.admin.workers.drain(row.id, ctx.by))
    if outcome.is_refusal:
        raise _unknown(worker)
    return ctx.done({"drain_requested": row.id}, outcome, f"to see it: tenure worker show {row.id}")


def _ago(row: "WorkerRow") -> str:
    return f"{row.heartbeat_age.total_seconds():.0f} s ago"


def _meant(admin: "Admin", worker: str) -> "WorkerRow":
    """The one worker of this name or id, or whose id begins so. A name may have had others before,
    and a worker's own name stands for its child if it has one."""
    from tenure.types import WorkerState

    rows = admin.workers.list()
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
        "see which there are: tenure worker list --all",
        Exit.NOT_FOUND,
    )
