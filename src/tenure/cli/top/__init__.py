"""`tenure top`: the installation live in the terminal, or one frame of it for a log."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from tenure.cli.errors import CommandError, Exit
from tenure.cli.options import AsJson, DatabaseUrl, SchemaName, Who, connect_admin
from tenure.cli.output import print_json, print_lines

if TYPE_CHECKING:
    from tenure.types import Overview

_NARROW = 80


def top(
    *,
    once: Annotated[bool, typer.Option("--once", help="Print one frame, and end.")] = False,
    interval: Annotated[
        float,
        typer.Option(
            "--interval", metavar="SECONDS", min=0.2, max=3600, help="How often to look; else 2."
        ),
    ] = 2.0,
    who: Who = None,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    schema: SchemaName = None,
) -> int:
    """Show the installation live: numbers, what needs attention, queues, workers, completions."""
    if once:
        with connect_admin(database_url, schema) as admin:
            overview = admin.overview()
        if as_json:
            print_json(overview)
        else:
            _print_frame(overview)
        return Exit.DONE
    if as_json:
        raise CommandError(
            "a live view is no data",
            "--json prints one document",
            "say --once, too: tenure top --once --json",
            Exit.USAGE,
        )
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise CommandError(
            "there is no terminal to draw on",
            "stdin or stdout is something else",
            "print one frame: tenure top --once",
            Exit.USAGE,
        )
    from tenure.cli.top.terminal import watch

    return watch(database_url, schema, interval=interval, who=who)


def _print_frame(overview: "Overview") -> None:
    """One frame, as tall as it needs to be: for people as wide as the terminal, and coloured."""
    from rich.console import Console

    from tenure.cli.top.frame import frame
    from tenure.cli.top.state import TopState

    if sys.stdout.isatty():
        console = Console(highlight=False)
        for line in frame(overview, TopState(), width=console.width, height=None):
            console.print(line, no_wrap=True, crop=True)
        return
    lines = frame(overview, TopState(), width=_NARROW, height=None)
    print_lines(line.plain.rstrip() for line in lines)
