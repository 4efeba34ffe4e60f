"""`tenure schedule backfill`: the jobs of past ticks, with a bar; a Ctrl-C does no harm."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from tenure.cli.bar import bar
from tenure.cli.data import print_fields, print_json
from tenure.cli.exits import Exit
from tenure.cli.failure import Failure
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
from tenure.cli.words import say

if TYPE_CHECKING:
    from datetime import datetime


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
    reason: Reason = None,
    dry_run: DryRun = False,
    who: Who = None,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    schema: SchemaName = None,
) -> int:
    """Make the jobs of past ticks that have none.

    A tick that has its job is left alone, so that the same again goes on where it was stopped.
    """
    from tenure.admin import BackfillProgress

    first, last = _ends(since, until)
    progress, stopped = BackfillProgress(total=0), False
    with opened(database_url, schema) as admin:
        known(admin, name)
        told = admin.schedules.backfill(
            name, first, last, by(who, reason), forgotten=forgotten, dry_run=dry_run
        )
        try:
            with bar("backfill") as advance:
                for progress in told:
                    advance(progress.done, progress.total)
        except KeyboardInterrupt:
            stopped = True
    if as_json:
        print_json({"dry_run": dry_run, "stopped": stopped, **asdict(progress)})
    else:
        print_fields(
            {
                "ticks": f"{progress.done} of {progress.total}",
                "jobs made": progress.made,
                "had one": progress.already,
                "up to": progress.up_to,
            }
        )
    if dry_run:
        say("nothing was changed; this is what would be")
    elif stopped:
        say("stopped; what is made stays made. To go on, run the same again")
    return Exit.INTERRUPTED if stopped else Exit.DONE


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
