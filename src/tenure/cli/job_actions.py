"""`tenure job retry`, `cancel`, `revoke`, `hold`, `resume`, `move`, `edit`, `rerun`, `delete`."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tenure import _actions
from tenure._actions import Action
from tenure.cli.errors import CommandError, Exit
from tenure.cli.fields import ARGS_FIELD, EDIT_FIELDS
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


_DRY_RUN_KEYS = "JSON: `dry_run`, and `jobs` with the `id`, `result` and `holder` of each job."
_BULK = (
    "With `--filter`, the command counts the jobs, asks for confirmation, starts an operation that "
    "workers carry out, and shows its progress. Ctrl-C stops watching, not the operation."
)
_BULK_KEYS = f"{_DRY_RUN_KEYS} With `--filter`: `dry_run`, `detached` and `operation`."
# The help text that follows the action's own sentence, and the example.
_HELP = {
    "retry": (
        (
            "Attempts are counted from zero again. Exits with 5 if newer jobs hold all of the "
            "keys. `--args` replaces all arguments."
        ),
        "tenure job retry 7 --reason 'provider is back'",
    ),
    "cancel": (
        "A running job ends as cancelled unless its handler still returns a result.",
        "tenure job cancel --filter 'queue:mail tag:vip' --dry-run",
    ),
    "revoke": (
        (
            "Jobs end as cancelled with reason `revoked`. The worker stops when it next renews the "
            "lease, and its writes through the lease are refused. Until then, the handler may "
            "still act on other systems. Try `tenure job cancel` first."
        ),
        "tenure job revoke 7 --reason 'it hangs'",
    ),
    "hold": ("", "tenure job hold 7 8 --reason 'customer disputes it'"),
    "resume": ("", "tenure job resume 7 8"),
    "delete": (
        "Queued and running jobs are not deleted: cancel them first.",
        "tenure job delete --filter 'state:cancelled queue:mail' --dry-run",
    ),
}


def add_commands(app: typer.Typer) -> None:
    """Add the commands that act on jobs to `tenure job`."""
    _add_retry(app)
    _add_bulk_command(app, _actions.CANCEL)
    for action in (_actions.REVOKE, _actions.HOLD, _actions.RESUME):
        _add_command(app, action)
    _add_move(app)
    _add_edit(app)
    _add_rerun(app)
    _add_bulk_command(app, _actions.DELETE)


def _add_command(app: typer.Typer, action: Action) -> None:
    text, example = _HELP[action.name]
    details = "\n\n".join(filter(None, (text, _DRY_RUN_KEYS)))

    @operator_command(app, action, example=example, details=details, dry_run=True)
    def act(ctx: CommandContext, ids: JobNumbers) -> int:
        return _act(ctx, action, ids)


def _add_bulk_command(app: typer.Typer, action: Action) -> None:
    text, example = _HELP[action.name]
    details = f"{text} {_BULK}\n\n{_BULK_KEYS}"

    @operator_command(app, action, example=example, details=details, dry_run=True)
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


def _add_retry(app: typer.Typer) -> None:
    text, example = _HELP["retry"]

    @operator_command(
        app,
        _actions.RETRY,
        example=example,
        details=f"{text} {_BULK}\n\n{_BULK_KEYS}",
        fields=ARGS_FIELD,
        dry_run=True,
    )
    def retry(
        ctx: CommandContext,
        ids: AnyJobNumbers = None,
        *,
        selector: ByFilter = None,
        rate: Rate = 500,
        yes: Yes = False,
        fields: dict[str, Any],
    ) -> int:
        if ids and selector is None:
            return _act(ctx, _actions.RETRY, ids, **fields)
        wanted = require_selector(ids, selector)
        if fields:
            raise CommandError(
                "the arguments are not for all matching jobs",
                "--args must be used with job ids, got --filter",
                """name the jobs, as in tenure job retry 7 8 --args '{"name": "Ada"}'""",
                Exit.USAGE,
            )
        return run_operation(ctx, "retry", wanted, rate=rate, yes=yes)


def _add_edit(app: typer.Typer) -> None:
    @operator_command(
        app,
        _actions.EDIT,
        example="""tenure job edit 7 --args '{"name": "Ada"}' --reason 'typo'""",
        details=(
            "`--args` replaces all arguments. Write the real values of redacted ones too. Running "
            f"jobs are not changed. `tenure job move` changes the queue.\n\n{_DRY_RUN_KEYS}"
        ),
        fields=EDIT_FIELDS,
        dry_run=True,
    )
    def edit(
        ctx: CommandContext,
        ids: JobNumbers,
        *,
        no_tags: Annotated[bool, typer.Option("--no-tags", help="Remove all tags.")] = False,
        fields: dict[str, Any],
    ) -> int:
        if no_tags:
            fields = {"tags": [], **fields}
        return _act(ctx, _actions.EDIT, ids, **fields)


def _add_rerun(app: typer.Typer) -> None:
    @operator_command(
        app,
        _actions.RERUN,
        example="tenure job rerun 7 --reason 'the report was empty'",
        details=(
            "The ended job stays. The new job has its own id, and starts without a cursor. "
            "`tenure job retry` continues a dead letter under its own id instead.\n\n"
            "JSON: `dry_run`, and `jobs` with the `id`, `result` and `holder` of each job, and the "
            "new `job`."
        ),
        fields=ARGS_FIELD,
        dry_run=True,
    )
    def rerun(
        ctx: CommandContext,
        ids: JobNumbers,
        *,
        keep_key: Annotated[
            bool, typer.Option("--keep-key", help="Give the new job the key, if free.")
        ] = False,
        fields: dict[str, Any],
    ) -> int:
        return _act(ctx, _actions.RERUN, ids, keep_key=keep_key, **fields)


def _add_move(app: typer.Typer) -> None:
    @operator_command(
        app,
        _actions.MOVE,
        example="tenure job move 7 --queue bulk --priority 2",
        details=(
            f"If you don't change the time, a job keeps its place in line. {_BULK}\n\n{_BULK_KEYS}"
        ),
        dry_run=True,
    )
    def move(
        ctx: CommandContext,
        ids: AnyJobNumbers = None,
        *,
        queue: Annotated[
            str | None, typer.Option("-q", "--queue", metavar="NAME", help="Move to this queue.")
        ] = None,
        priority: Annotated[
            int | None,
            typer.Option(
                "--priority",
                metavar="0-9",
                min=0,
                max=9,
                help="Set the priority; 9 is the most urgent.",
            ),
        ] = None,
        run_at: Annotated[
            str | None,
            typer.Option("--run-at", metavar="TIME", help="Run at this time, or now if past."),
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
    """Act on each job, print the outcomes, and return one exit code for all."""
    command = getattr(ctx.admin.jobs, action.name)
    results = command(ids, ctx.by, dry_run=ctx.dry_run, **changes)
    outcomes = [
        (job_id, action.outcome(job_id, result))
        for job_id, result in zip(ids, results, strict=True)
    ]
    columns = {"id": "id", "result": "result", "holder": "key held by"}
    rows: list[tuple[object, ...]] = [
        (job_id, outcome.status, outcome.holder) for job_id, outcome in outcomes
    ]
    if action is _actions.RERUN:
        columns["job"] = "new job"
        rows = [(*row, outcome.job) for row, (_, outcome) in zip(rows, outcomes, strict=True)]
    if ctx.as_json:
        jobs = [dict(zip(columns, row, strict=True)) for row in rows]
        print_json({"dry_run": ctx.dry_run, "jobs": jobs})
    else:
        print_table(tuple(columns.values()), rows)
    if ctx.dry_run:
        print_note("dry run: nothing was changed")
    refused = [(job_id, outcome) for job_id, outcome in outcomes if outcome.is_refusal]
    if not refused:
        return Exit.DONE
    job_id, first = refused[0]
    print_error(
        f"{len(refused)} of {len(outcomes)} jobs are unchanged",
        first.sentence,
        f"see: tenure job show {first.holder or job_id}",
    )
    if len(refused) < len(outcomes):
        return Exit.PARTIAL
    held = all(outcome.status == "key_held" for _, outcome in refused)
    return Exit.CONFLICT if held else Exit.FAILED
