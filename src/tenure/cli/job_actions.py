"""`tenure job retry`, `cancel`, `revoke`, `hold`, `resume`, `move`, `delete`: many at once."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tenure import _actions
from tenure._actions import Action
from tenure.cli.errors import Exit
from tenure.cli.options import (
    AnyJobNumbers,
    CommandContext,
    JobNumbers,
    instant,
    operator_command,
)
from tenure.cli.output import print_error, print_json, print_note, print_table
from tenure.cli.selectors import ByFilter, Rate, Yes, require_selector, run_operation

if TYPE_CHECKING:
    from collections.abc import Sequence


def add_commands(app: typer.Typer) -> None:
    """Add the commands that act on jobs to `tenure job`."""
    for action in (_actions.RETRY, _actions.CANCEL):
        _add_bulk_command(app, action)
    for action in (_actions.REVOKE, _actions.HOLD, _actions.RESUME):
        _add_command(app, action)
    _add_move(app)
    _add_bulk_command(app, _actions.DELETE)


def _add_command(app: typer.Typer, action: Action) -> None:
    @operator_command(app, action, dry_run=True)
    def act(ctx: CommandContext, ids: JobNumbers) -> int:
        return _act(ctx, action, ids)


def _add_bulk_command(app: typer.Typer, action: Action) -> None:
    @operator_command(app, action, dry_run=True)
    def act(
        ctx: CommandContext,
        ids: AnyJobNumbers = None,
        *,
        selector: ByFilter = None,
        rate: Rate = 500,
        yes: Yes = False,
    ) -> int:
        if ids and selector is None:
            return _act(ctx, action, ids)
        wanted = require_selector(ids, selector)
        return run_operation(ctx, action.name, wanted, rate=rate, yes=yes)


def _add_move(app: typer.Typer) -> None:
    @operator_command(app, _actions.MOVE, dry_run=True)
    def move(
        ctx: CommandContext,
        ids: AnyJobNumbers = None,
        *,
        queue: Annotated[
            str | None, typer.Option("-q", "--queue", metavar="NAME", help="To this queue.")
        ] = None,
        priority: Annotated[
            int | None, typer.Option("--priority", min=0, max=9, help="9 is the most urgent.")
        ] = None,
        run_at: Annotated[
            str | None,
            typer.Option("--run-at", metavar="INSTANT", help="Due then, at the earliest now."),
        ] = None,
        selector: ByFilter = None,
        rate: Rate = 500,
        yes: Yes = False,
    ) -> int:
        from tenure.admin import Changes

        changes: dict[str, Any] = {
            "queue": queue,
            "priority": priority,
            "run_at": instant(run_at),
        }
        if ids and selector is None:
            return _act(ctx, _actions.MOVE, ids, **changes)
        wanted = require_selector(ids, selector)
        return run_operation(ctx, "move", wanted, rate=rate, yes=yes, changes=Changes(**changes))


def _act(ctx: CommandContext, action: Action, ids: "Sequence[int]", **changes: Any) -> Exit:
    """Act on each job, show the outcomes, and answer for all: done, partly, or not at all."""
    command = getattr(ctx.admin.jobs, action.name)
    results = command(ids, ctx.by, dry_run=ctx.dry_run, **changes)
    outcomes = [
        (job_id, action.outcome(job_id, result))
        for job_id, result in zip(ids, results, strict=True)
    ]
    rows = [(job_id, outcome.status, outcome.holder) for job_id, outcome in outcomes]
    if ctx.as_json:
        columns = ("id", "result", "holder")
        jobs = [dict(zip(columns, row, strict=True)) for row in rows]
        print_json({"dry_run": ctx.dry_run, "jobs": jobs})
    else:
        print_table(("id", "result", "key held by"), rows)
    if ctx.dry_run:
        print_note("nothing was changed; this is what would be")
    refused = [(job_id, outcome) for job_id, outcome in outcomes if outcome.is_refusal]
    if not refused:
        return Exit.DONE
    job_id, first = refused[0]
    print_error(
        f"{len(refused)} of {len(outcomes)} jobs are unchanged",
        first.sentence,
        f"look at it: tenure job show {first.holder or job_id}",
    )
    if len(refused) < len(outcomes):
        return Exit.PARTIAL
    held = all(outcome.status == "key_held" for _, outcome in refused)
    return Exit.CONFLICT if held else Exit.FAILED
