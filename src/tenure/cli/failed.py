"""`tenure failed`: the dead letters, listed, and retried or discarded by the thousand."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from tenure import _actions
from tenure._actions import Action
from tenure.cli.errors import CommandError, Exit
from tenure.cli.job_output import print_found, print_jobs
from tenure.cli.options import (
    After,
    CommandContext,
    Commands,
    Count,
    operator_command,
)
from tenure.cli.output import print_json, print_note, print_rows
from tenure.cli.selectors import (
    OfQueue,
    OfTask,
    Rate,
    SelectorWords,
    Yes,
    build_selector,
    run_operation,
)

if TYPE_CHECKING:
    from tenure.admin import Filter
    from tenure.types import Selector

app: typer.Typer = typer.Typer(
    cls=Commands,
    name="failed",
    help="The dead letters: group and list them, retry or discard many at once.",
)

OfSignature = Annotated[
    str | None,
    typer.Option("--signature", metavar="TEXT", help="Whose error has this signature."),
]


@operator_command(app, "groups")
def groups(
    ctx: CommandContext,
    *,
    task: OfTask = None,
    count: Count = 50,
    after: After = None,
) -> int:
    """Show dead letters by task and error, with how many there are of each."""
    page = ctx.admin.jobs.failed_groups(task=task, count=count, after=after)
    hide = ctx.admin.settings.redactor().value
    rows = [
        replace(group, signature=hide(group.signature), error_message=hide(group.error_message))
        for group in page.groups
    ]
    if ctx.as_json:
        print_json({"groups": rows, "next": page.next})
    elif rows:
        print_rows(
            rows,
            *("task", "signature", "count", ("newest", "newest_at"), "sample"),
            ("error", "error_type"),
        )
    if page.next is None:
        print_note(f"{len(rows)} shown; no more")
    else:
        print_note(f"{len(rows)} shown; more may follow: --after {page.next}")
    return Exit.DONE


@operator_command(app, "list")
def list_failed(
    ctx: CommandContext,
    words: SelectorWords = None,
    *,
    queue: OfQueue = None,
    task: OfTask = None,
    signature: OfSignature = None,
    count: Count = 50,
    after: After = None,
) -> int:
    """Show dead letters, newest first: all, or those that a selector means."""
    from tenure.admin import State

    if signature is None:
        selector = _failed(build_selector(words, queue=queue, task=task))
        print_found(ctx.admin, selector, count=count, after=after, as_json=ctx.as_json)
    else:
        _refuse_both(words)
        page = ctx.admin.jobs.list(
            State.FAILED, queue=queue, task=task, signature=signature, count=count, after=after
        )
        print_jobs(ctx.admin, page.jobs, after=page.next, as_json=ctx.as_json)
    return Exit.DONE


def _add_command(action: Action) -> None:
    @operator_command(app, action, dry_run=True)
    def act(
        ctx: CommandContext,
        words: SelectorWords = None,
        *,
        queue: OfQueue = None,
        task: OfTask = None,
        signature: OfSignature = None,
        rate: Rate = 500,
        yes: Yes = False,
    ) -> int:
        wanted = _dead_letters(words, queue, task, signature)
        return run_operation(ctx, action.name, wanted, rate=rate, yes=yes, of="dead letters")


_add_command(_actions.RETRY)
_add_command(_actions.DISCARD)


def _failed(selector: "Selector") -> "Selector":
    from tenure.types import JobView

    if selector.id or selector.state == (JobView.FAILED,):
        return selector
    if selector.state:
        raise CommandError(
            "only dead letters are listed here",
            "the selector names another state",
            "leave state: away; for other states: tenure job list",
            Exit.USAGE,
        )
    return replace(selector, state=(JobView.FAILED,))


def _dead_letters(
    words: "list[str] | None", queue: str | None, task: str | None, signature: str | None
) -> "Filter":
    """Which dead letters an operation is for. A signature is not also the type of an error."""
    from tenure.admin import Filter, selected

    if signature is None:
        return selected(build_selector(words, queue=queue, task=task))
    _refuse_both(words)
    return Filter(queue=queue, task=task, signature=signature)


def _refuse_both(words: "list[str] | None") -> None:
    if words:
        raise CommandError(
            "it is not clear which dead letters are meant",
            "there are a selector and a --signature",
            "leave --signature away, and say error: in the selector",
            Exit.USAGE,
        )
