"""`tenure failed`: the dead letters, listed, and retried or discarded by the thousand."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from tenure.cli.errors import CommandError, Exit
from tenure.cli.job_output import print_found, print_jobs
from tenure.cli.options import (
    AsJson,
    Commands,
    DatabaseUrl,
    DryRun,
    Reason,
    SchemaName,
    Who,
    actor,
    connect_admin,
)
from tenure.cli.output import print_json, print_note, print_table
from tenure.cli.selectors import (
    OfQueue,
    OfTask,
    OperationOptions,
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


@app.command("groups")
def groups(
    *,
    task: OfTask = None,
    count: Annotated[
        int, typer.Option("-n", "--count", min=1, max=1000, help="How many at the most.")
    ] = 50,
    after: Annotated[
        str | None,
        typer.Option("--after", metavar="PLACE", help="Go on where the last list ended."),
    ] = None,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    schema: SchemaName = None,
) -> int:
    """Show dead letters by task and error, with how many there are of each."""
    with connect_admin(database_url, schema) as admin:
        page = admin.failed_groups(task=task, count=count, after=after)
        hide = admin.redactor().value
    rows = [
        replace(group, signature=hide(group.signature), error_message=hide(group.error_message))
        for group in page.groups
    ]
    if as_json:
        print_json({"groups": rows, "next": page.next})
    elif rows:
        print_table(
            ("task", "signature", "count", "newest", "sample", "error"),
            [
                (row.task, row.signature, row.count, row.newest_at, row.sample, row.error_type)
                for row in rows
            ],
        )
    if page.next is None:
        print_note(f"{len(rows)} shown; no more")
    else:
        print_note(f"{len(rows)} shown; more may follow: --after {page.next}")
    return Exit.DONE


@app.command("list")
def list_failed(
    words: SelectorWords = None,
    *,
    queue: OfQueue = None,
    task: OfTask = None,
    signature: OfSignature = None,
    count: Annotated[
        int, typer.Option("-n", "--count", min=1, max=1000, help="How many at the most.")
    ] = 50,
    after: Annotated[
        str | None,
        typer.Option("--after", metavar="PLACE", help="Go on where the last list ended."),
    ] = None,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    schema: SchemaName = None,
) -> int:
    """Show dead letters, newest first: all, or those that a selector means."""
    from tenure.admin import State

    with connect_admin(database_url, schema) as admin:
        if signature is None:
            selector = _failed(build_selector(words, queue=queue, task=task))
            print_found(admin, selector, count=count, after=after, as_json=as_json)
        else:
            _refuse_both(words)
            page = admin.jobs(
                State.FAILED, queue=queue, task=task, signature=signature, count=count, after=after
            )
            print_jobs(admin, page.jobs, after=page.next, as_json=as_json)
    return Exit.DONE


@app.command()
def retry(
    words: SelectorWords = None,
    *,
    queue: OfQueue = None,
    task: OfTask = None,
    signature: OfSignature = None,
    rate: Rate = 500,
    yes: Yes = False,
    dry_run: DryRun = False,
    reason: Reason = None,
    who: Who = None,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    schema: SchemaName = None,
) -> int:
    """Bring all dead letters that match back for a new life, at a rate.

    Workers do it; Ctrl-C stops watching, and it goes on.
    """
    said = _dead_letters(words, queue, task, signature)
    asked = OperationOptions(actor(who, reason), rate, yes, dry_run, as_json)
    with connect_admin(database_url, schema) as admin:
        return run_operation(admin, "retry", said, asked, of="dead letters")


@app.command()
def discard(
    words: SelectorWords = None,
    *,
    queue: OfQueue = None,
    task: OfTask = None,
    signature: OfSignature = None,
    rate: Rate = 500,
    yes: Yes = False,
    dry_run: DryRun = False,
    reason: Reason = None,
    who: Who = None,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    schema: SchemaName = None,
) -> int:
    """Delete all dead letters that match for good, at a rate.

    Workers do it; Ctrl-C stops watching, and it goes on.
    """
    said = _dead_letters(words, queue, task, signature)
    asked = OperationOptions(actor(who, reason), rate, yes, dry_run, as_json)
    with connect_admin(database_url, schema) as admin:
        return run_operation(admin, "discard", said, asked, of="dead letters")


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
