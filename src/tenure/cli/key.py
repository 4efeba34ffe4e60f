"""`tenure key`: free deduplication keys."""

from typing import Annotated

import typer

from tenure import _actions
from tenure.cli.errors import CommandError, Exit
from tenure.cli.help import HelpGroup
from tenure.cli.options import CommandContext, operator_command

app: typer.Typer = typer.Typer(cls=HelpGroup, name="key", help="Free deduplication keys.")


@app.callback()
def key() -> None:
    """Free deduplication keys."""


@operator_command(app, _actions.FREE_KEY, example="tenure key free billing.charge invoice-7")
def free(
    ctx: CommandContext,
    task: Annotated[str, typer.Argument(metavar="TASK", help="Name of the task.")],
    key: Annotated[str, typer.Argument(metavar="KEY", help="The key.")],
) -> int:
    """Its next enqueue then creates a job. A queued or running job keeps its key: exits with 5.

    JSON: `holder`, the job that held the key.
    """
    result = ctx.admin.keys.free(task, key, ctx.by)
    outcome = _actions.FREE_KEY.outcome(key, result, task=task)
    if outcome.is_refusal:
        is_live = outcome.holder is not None
        hint = f"cancel the job: tenure job cancel {outcome.holder}" if is_live else "check both"
        code = Exit.CONFLICT if is_live else Exit.NOT_FOUND
        raise CommandError("the key was not freed", outcome.sentence, hint, code)
    return ctx.done({"holder": outcome.holder}, outcome, "")
