"""Which jobs a command line means: a selector, options that are spellings of it, or ids."""

from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

import typer

from tenure.cli.errors import CommandError, Exit
from tenure.cli.operation_progress import start_and_follow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenure.admin import Admin, By, Changes, Filter
    from tenure.types import OperationRow, Selector

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


class OperationOptions(NamedTuple):
    """How an operation is to be done."""

    by: "By"
    rate: int
    yes: bool
    dry_run: bool
    as_json: bool


def run_operation(
    admin: "Admin",
    kind: 'Literal["retry", "cancel", "discard", "delete", "move"]',
    said: "Filter | Selector",
    asked: OperationOptions,
    *,
    of: str = "jobs",
    changes: "Changes | None" = None,
) -> Exit:
    """Do one thing to all that is meant, from the question to the end."""

    def start(dry_run: bool) -> "OperationRow":
        return admin.operations.start(
            kind, said, asked.by, changes=changes, rate=asked.rate, dry_run=dry_run
        )

    return start_and_follow(
        admin, start, of=of, yes=asked.yes, dry_run=asked.dry_run, as_json=asked.as_json
    )


def selector_or_ids(ids: "Sequence[int] | None", said: str | None) -> "Selector | None":
    """The selector of `--filter`; None if ids are named instead. One of them must be, and an empty
    selector is none: it would be all jobs, by the slip of a script."""
    if bool(ids) is (said is not None):
        raise CommandError(
            "it is not clear which jobs are meant",
            "there are ids and a --filter" if ids else "there is neither an id nor a --filter",
            "name ids, or say which: --filter 'state:failed task:mail.send'",
            Exit.USAGE,
        )
    if said is None:
        return None
    if not said.strip():
        raise CommandError(
            "the --filter is empty",
            "it would mean every job",
            "say which, if only by a state: --filter state:failed",
            Exit.USAGE,
        )
    return build_selector([said])
