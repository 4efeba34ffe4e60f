"""`tenure top`: show the installation live in the terminal, or print one frame."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from tenure.cli.errors import CommandError, Exit
from tenure.cli.options import ActorName, AsJson, DatabaseUrl, SchemaName, connect_admin
from tenure.cli.output import print_json, print_lines

if TYPE_CHECKING:
    from tenure.types import Overview

_NARROW = 80


def top(
    *,
    once: Annotated[bool, typer.Option("--once", help="Print one frame and exit.")] = False,
    interval: Annotated[
        float,
        typer.Option(
            "--interval",
            metavar="SECONDS",
            min=0.2,
            max=3600,
            help="Refresh this often.",
            show_default="2",
        ),
    ] = 2.0,
    actor_name: ActorName = None,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    schema: SchemaName = None,
) -> int:
    """Show queues, workers and problems live in the terminal.

    Keys: `q` quits. `s` changes the queue order. `j`, `k` or the arrows select a queue. `p` pauses
    or resumes it, after asking for a reason. `o` opens a job by its id.

    Needs a terminal of at least 80 by 24 characters. Keeps running if the database is unreachable.
    `NO_COLOR` turns colors off. `--json` needs `--once`. Exits with 0 after `q`, and with 130 after
    a signal.
    """
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
            "a live view cannot be printed as JSON",
            "--json prints one document",
            "add --once: tenure top --once --json",
            Exit.USAGE,
        )
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise CommandError(
            "there is no terminal to draw on",
            "stdin or stdout is not a terminal",
            "print one frame: tenure top --once",
            Exit.USAGE,
        )
    from tenure.cli.top.terminal import watch

    return watch(database_url, schema, interval=interval, actor_name=actor_name)


def _print_frame(overview: "Overview") -> None:
    """Print one full frame. In a terminal, it has the terminal's width and colors."""
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
