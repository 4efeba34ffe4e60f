"""`tenure schedule backfill`: the jobs of past ticks, made by an operation that is watched."""

from typing import TYPE_CHECKING, Annotated

import typer

from tenure.cli.exits import Exit
from tenure.cli.failure import Failure
from tenure.cli.operation.following import perform
from tenure.cli.options import (
    AsJson,
    DatabaseUrl,
    DryRun,
    Reason,
    SchemaName,
    Who,
    by,
    instant,
    opened,
)
from tenure.cli.schedule.naming import Name, known

if TYPE_CHECKING:
    from datetime import datetime

    from tenure.admin import OperationRow


def backfill(
    name: Name,
    *,
    since: Annotated[
        str, typer.Option("--from", metavar="INSTANT", help="The first tick's time or before.")
    ],
    until: Annotated[
        str | None,
        typer.Option("--to", metavar="INSTANT", help="The last tick's time or after; else now."),
    ] = None,
    forgotten: Annotated[
        bool,
        typer.Option("--forgotten", help="Also ticks so old that nobody knows what they made."),
    ] = False,
    rate: Annotated[
        int, typer.Option("--rate", min=1, max=10_000, help="How many jobs a second at the most.")
    ] = 500,
    reason: Reason = None,
    dry_run: DryRun = False,
    who: Who = None,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    schema: SchemaName = None,
) -> int:
    """Make the jobs of past ticks that have none, at a rate.

    Workers do it; Ctrl-C stops watching, and it goes on.
    """
    first, last = _ends(since, until)
    with opened(database_url, schema) as admin:
        known(admin, name)

        def start(rehearsal: bool) -> "OperationRow":
            return admin.schedules.backfill(
                name,
                first,
                last,
                by(who, reason),
                rate=rate,
                forgotten=forgotten,
                dry_run=rehearsal,
            )

        return perform(
            admin, start, of="ticks without a job", yes=True, dry_run=dry_run, as_json=as_json
        )


def _ends(since: str, until: str | None) -> "tuple[datetime, datetime]":
    from datetime import UTC, datetime, timedelta

    # The database's clock is the judge of now; this one may be behind it.
    ahead = datetime.now(UTC) + timedelta(days=1)
    ends = [instant(since), instant(until) or ahead]
    first, last = [end for end in ends if end is not None]
    for text, end in ((since, first), (until, last)):
        if end.tzinfo is None:
            raise Failure(
                "the instant is not understood",
                f"{text} has no time zone",
                "write it with one, as in 2030-01-31T09:00+01:00",
                Exit.USAGE,
            )
    return first, last
