"""Which jobs a command line means: a selector, options that are spellings of it, or ids."""

from typing import TYPE_CHECKING, Annotated, cast

import typer

from tenure.cli.errors import CommandError, Exit
from tenure.cli.operation_progress import start_and_follow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenure.admin import Changes, Filter
    from tenure.cli.options import CommandContext
    from tenure.types import OperationKind, OperationRow, Selector

SelectorWords = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="SELECTOR…",
        help="Which jobs, as in state:failed 'created:<2h'; docs/reference/selectors.md.",
    ),
]
OfQueue = Annotated[
    str | None, typer.Option("-q", "--queue", metavar="NAME", help="Of this queue.")
]
OfTask = Annotated[str | None, typer.Option("--task", metavar="NAME", help="Of this task.")]
ByFilter = Annotated[
    str | None,
    typer.Option(
        "--filter",
        metavar="SELECTOR",
        help="Instead of ids: all jobs that this selector means, as an operation.",
    ),
]
Rate = Annotated[
    int, typer.Option("--rate", min=1, max=10_000, help="How many jobs a second at the most.")
]
Yes = Annotated[bool, typer.Option("--yes", help="Do it without asking.")]


def build_selector(
    words: "Sequence[str] | None",
    *,
    state: str | None = None,
    queue: str | None = None,
    task: str | None = None,
) -> "Selector":
    """The selector that words and options say together; what is said twice is refused."""
    from tenure.admin import parse_selector, selector_text
    from tenure.types import JobView, Selector

    options = Selector(
        state=() if state is None else (JobView(state),),
        queue=() if queue is None else (queue,),
        task=() if task is None else (task,),
    )
    return parse_selector(" ".join([*(words or ()), selector_text(options)]).strip())


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
    """Do one thing to all jobs that are wanted, from the question to the end."""

    def start(dry_run: bool) -> "OperationRow":
        kind_of = cast("OperationKind", kind)
        return ctx.admin.operations.start(
            kind_of, wanted, ctx.by, changes=changes, rate=rate, dry_run=dry_run
        )

    return start_and_follow(
        ctx.admin, start, of=of, yes=yes, dry_run=ctx.dry_run, as_json=ctx.as_json
    )


def require_selector(ids: "Sequence[int] | None", text: str | None) -> "Selector":
    """The selector of `--filter`, without ids next to it. An empty one is refused: it would be all
    jobs, by the slip of a script."""
    if ids or text is None:
        raise CommandError(
            "it is not clear which jobs are meant",
            "there are ids and a --filter" if ids else "there is neither an id nor a --filter",
            "name ids, or say which: --filter 'state:failed task:mail.send'",
            Exit.USAGE,
        )
    if not text.strip():
        raise CommandError(
            "the --filter is empty",
            "it would mean every job",
            "say which, if only by a state: --filter state:failed",
            Exit.USAGE,
        )
    return build_selector([text])
