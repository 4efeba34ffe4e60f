"""Select jobs on the command line: by selector, options or ids."""

from typing import TYPE_CHECKING, Annotated, cast

import typer

from tenure.cli.errors import CommandError, Exit
from tenure.cli.operation_progress import start_and_follow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenure.admin import Changes, Filter
    from tenure.cli.options import CommandContext
    from tenure.types import OperationKind, OperationRow, Selector

SelectorTerms = Annotated[
    list[str] | None,
    typer.Argument(metavar="SELECTOR…", help="Which jobs, such as state:failed 'created:<2h'."),
]
OfQueue = Annotated[
    str | None, typer.Option("-q", "--queue", metavar="NAME", help="Only jobs of this queue.")
]
OfTask = Annotated[
    str | None, typer.Option("--task", metavar="NAME", help="Only jobs of this task.")
]
ByFilter = Annotated[
    str | None,
    typer.Option(
        "--filter",
        metavar="SELECTOR",
        help="Act on all matching jobs instead, as an operation.",
    ),
]
Rate = Annotated[
    int,
    typer.Option(
        "--rate", metavar="N", min=1, max=10_000, help="Process at most N jobs per second."
    ),
]
Yes = Annotated[bool, typer.Option("--yes", help="Start without asking for confirmation.")]


def build_selector(
    terms: "Sequence[str] | None",
    *,
    state: str | None = None,
    queue: str | None = None,
    task: str | None = None,
) -> "Selector":
    """Return the selector for the terms and options combined. Reject a field given twice."""
    from tenure.admin import parse_selector, selector_text
    from tenure.types import JobView, Selector

    options = Selector(
        state=() if state is None else (JobView(state),),
        queue=() if queue is None else (queue,),
        task=() if task is None else (task,),
    )
    return parse_selector(" ".join([*(terms or ()), selector_text(options)]).strip())


def run_operation(
    ctx: "CommandContext",
    kind: str,
    wanted: "Filter | Selector",
    *,
    rate: int,
    yes: bool,
    of: str = "jobs",
    changes: "Changes | None" = None,
) -> Exit:
    """Ask for confirmation, start an operation on all matching jobs, and follow it to its end."""

    def start(dry_run: bool) -> "OperationRow":
        kind_of = cast("OperationKind", kind)
        return ctx.admin.operations.start(
            kind_of, wanted, ctx.by, changes=changes, rate=rate, dry_run=dry_run
        )

    return start_and_follow(
        ctx.admin, start, of=of, yes=yes, dry_run=ctx.dry_run, as_json=ctx.as_json
    )


def require_selector(ids: "Sequence[int] | None", text: str | None) -> "Selector":
    """Return the `--filter` selector, which can't be combined with ids.

    An empty selector is rejected, because a script with an empty variable would act on all jobs.
    """
    if ids or text is None:
        raise CommandError(
            "which jobs to act on is not clear",
            "there are both ids and a --filter" if ids else "there is neither an id nor a --filter",
            "pass ids, or a selector: --filter 'state:failed task:mail.send'",
            Exit.USAGE,
        )
    if not text.strip():
        raise CommandError(
            "the --filter is empty",
            "it would match every job",
            "name at least a state: --filter state:failed",
            Exit.USAGE,
        )
    return build_selector([text])
