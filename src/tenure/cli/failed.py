"""`tenure failed`: the dead letters, listed, and retried or discarded by the thousand."""

from typing import Annotated

import typer

from tenure.cli.exits import Exit
from tenure.cli.looking import StateName, print_jobs
from tenure.cli.operation.following import perform
from tenure.cli.options import AsJson, DatabaseUrl, DryRun, Reason, SchemaName, Who, by, opened

app: typer.Typer = typer.Typer(
    name="failed", help="The dead letters: list them, retry or discard many at once."
)

OfQueue = Annotated[
    str | None, typer.Option("-q", "--queue", metavar="NAME", help="Of this queue.")
]
OfTask = Annotated[str | None, typer.Option("--task", metavar="NAME", help="Of this task.")]
OfSignature = Annotated[
    str | None,
    typer.Option("--signature", metavar="TEXT", help="Whose error has this signature."),
]
Rate = Annotated[
    int, typer.Option("--rate", min=1, max=10_000, help="How many jobs a second at the most.")
]
Yes = Annotated[bool, typer.Option("--yes", help="Do it without asking.")]


@app.command("list")
def list_failed(
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
    """Show dead letters, newest first."""
    with opened(database_url, schema) as admin:
        print_jobs(
            admin,
            StateName.FAILED,
            queue=queue,
            task=task,
            signature=signature,
            count=count,
            after=after,
            as_json=as_json,
        )
    return Exit.DONE


@app.command()
def retry(
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
    from tenure.admin import Filter

    said = Filter(queue=queue, task=task, signature=signature)
    with opened(database_url, schema) as admin:
        return perform(
            admin,
            "retry",
            said,
            by(who, reason),
            rate=rate,
            yes=yes,
            dry_run=dry_run,
            as_json=as_json,
        )


@app.command()
def discard(
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
    from tenure.admin import Filter

    said = Filter(queue=queue, task=task, signature=signature)
    with opened(database_url, schema) as admin:
        return perform(
            admin,
            "discard",
            said,
            by(who, reason),
            rate=rate,
            yes=yes,
            dry_run=dry_run,
            as_json=as_json,
        )
