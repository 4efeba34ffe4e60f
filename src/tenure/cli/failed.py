"""`tenure failed`: group, list, retry and discard dead letters."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from tenure import _actions
from tenure._actions import Action
from tenure.cli.errors import CommandError, Exit
from tenure.cli.help import HelpGroup
from tenure.cli.job_output import print_found, print_jobs
from tenure.cli.options import (
    After,
    CommandContext,
    Count,
    operator_command,
)
from tenure.cli.output import print_json, print_page_end, print_rows
from tenure.cli.selectors import (
    OfQueue,
    OfTask,
    Rate,
    SelectorTerms,
    Yes,
    build_selector,
    run_operation,
)

if TYPE_CHECKING:
    from tenure.admin import Filter
    from tenure.types import Selector

app: typer.Typer = typer.Typer(
    cls=HelpGroup,
    name="failed",
    help="Group, list, retry and discard dead letters.",
)

OfSignature = Annotated[
    str | None,
    typer.Option("--signature", metavar="TEXT", help="Only dead letters with this signature."),
]


@operator_command(app, "groups", example="tenure failed groups --task mail.send")
def groups(
    ctx: CommandContext,
    *,
    task: OfTask = None,
    count: Count = 50,
    after: After = None,
) -> int:
    """Count dead letters by task and error.

    Counts are exact up to 10,000. Each group shows its newest dead letter as a sample, and the
    signature to pass to other commands as `--signature`.

    JSON: `groups` and `next`.
    """
    page = ctx.admin.jobs.failed_groups(task=task, count=count, after=after)
    shown = ctx.admin.settings.redactor()
    samples = {job.id: job for job in ctx.admin.jobs.get_many([one.sample for one in page.groups])}
    rows = [shown.group(group, of=samples.get(group.sample)) for group in page.groups]
    if ctx.as_json:
        print_json({"groups": rows, "next": page.next})
    elif rows:
        print_rows(
            rows,
            *("task", "signature", "count", ("newest", "newest_at"), "sample"),
            ("error", "error_type"),
        )
    print_page_end(len(rows), "--after", page.next)
    return Exit.DONE


@operator_command(app, "list", example="tenure failed list error:ConnectionError --queue mail")
def list_failed(
    ctx: CommandContext,
    terms: SelectorTerms = None,
    *,
    queue: OfQueue = None,
    task: OfTask = None,
    signature: OfSignature = None,
    count: Count = 50,
    after: After = None,
) -> int:
    """List dead letters with their last error, newest first.

    JSON: `jobs` and `next`.
    """
    from tenure.admin import State

    if signature is None:
        selector = _failed(build_selector(terms, queue=queue, task=task))
        print_found(ctx.admin, selector, count=count, after=after, as_json=ctx.as_json)
    else:
        _refuse_both(terms)
        page = ctx.admin.jobs.list(
            State.FAILED,
            queue=queue,
            task=task,
            signature=signature,
            count=count,
            after=after,
            largest=None if ctx.as_json else 0,
        )
        print_jobs(ctx.admin, page.jobs, after=page.next, as_json=ctx.as_json)
    return Exit.DONE


_DETAILS = """\
Acts on all dead letters that match. Without a selector or options, that's every dead letter. The
command counts them, asks for confirmation, and starts an operation that workers carry out. Ctrl-C
stops watching, not the operation. Exits with 7 if some dead letters stay unchanged, and with 1 if
all do.

JSON: `dry_run`, `detached` and `operation`. With `--dry-run`: `dry_run` and `total`."""


def _add_command(action: Action) -> None:
    example = f"tenure failed {action.name} error:ConnectionError --queue mail --dry-run"

    @operator_command(app, action, example=example, details=_DETAILS, dry_run=True)
    def act(
        ctx: CommandContext,
        terms: SelectorTerms = None,
        *,
        queue: OfQueue = None,
        task: OfTask = None,
        signature: OfSignature = None,
        rate: Rate = 500,
        yes: Yes = False,
    ) -> int:
        wanted = _dead_letters(terms, queue, task, signature)
        return run_operation(ctx, action.name, wanted, rate=rate, yes=yes, of="dead letters")


_add_command(_actions.RETRY)
_add_command(_actions.DISCARD)


def _failed(selector: "Selector") -> "Selector":
    from tenure.types import JobView

    if selector.id or selector.state == (JobView.FAILED,):
        return selector
    if selector.state:
        raise CommandError(
            "this command lists dead letters only",
            "the selector names another state",
            "remove state: from the selector, or use: tenure job list",
            Exit.USAGE,
        )
    return replace(selector, state=(JobView.FAILED,))


def _dead_letters(
    terms: "list[str] | None", queue: str | None, task: str | None, signature: str | None
) -> "Filter":
    """Return an operation's filter. A signature can't be part of a selector."""
    from tenure.admin import Filter, selected

    if signature is None:
        return selected(build_selector(terms, queue=queue, task=task))
    _refuse_both(terms)
    return Filter(queue=queue, task=task, signature=signature)


def _refuse_both(terms: "list[str] | None") -> None:
    if terms:
        raise CommandError(
            "which dead letters to act on is not clear",
            "there are a selector and a --signature",
            "omit --signature, and write error: in the selector",
            Exit.USAGE,
        )
