"""`tenure demo`: a playground that fills every page of the dashboard."""

import signal
from importlib.util import find_spec
from typing import Annotated

import typer

from tenure.cli.errors import CommandError, Exit
from tenure.cli.output import print_note

_SERVED_BY = ("fastapi", "jinja2", "uvicorn")


def demo(
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            metavar="PORT",
            min=0,
            help="Serve the dashboard on this port.",
            show_default="8400, or a free one",
        ),
    ] = None,
    *,
    seconds: Annotated[
        float | None,
        typer.Option(
            "--for",
            metavar="SECONDS",
            min=0,
            help="Stop after this many seconds.",
            show_default="until Ctrl-C",
        ),
    ] = None,
) -> int:
    """Run a demo shop with workers and the dashboard.

    Everything is real: a private PostgreSQL, two workers, a scheduler, and a program that places
    orders. Some jobs fail and are retried, some become dead letters, and one worker is killed. The
    printed link signs you in once, within a minute.

    Needs the extra `tenure[server]` and an installed PostgreSQL 15 or newer. The demo ignores your
    settings. Ctrl-C or SIGTERM stops it and deletes its data and logs, and so does `kill -9`.
    """
    from tenure._local_postgres import find_binaries

    if missing := [name for name in _SERVED_BY if find_spec(name) is None]:
        raise CommandError(
            "the dashboard cannot be served",
            f"not installed: {', '.join(missing)}",
            'install the extra: pip install "tenure[server,binary]"',
        )
    if find_binaries() is None:
        raise CommandError(
            "there is no database",
            "PostgreSQL 15 or newer is not installed here",
            "install it: apt-get install postgresql (Fedora: dnf install postgresql-server)",
        )
    from tenure.demo.playground import Playground

    # Signals act like Ctrl-C, even if the parent process ignores them.
    for sign in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(sign, signal.default_int_handler)
    print_note("starting a database, a server, two workers and a shop; this takes a few seconds")
    try:
        with Playground(port=port, say=print_note) as playground:
            print_note(f"dashboard: {playground.link}")
            print_note(f"           works once, for a minute; again: {playground.again}")
            print_note(f"logs:      {playground.directory}")
            print_note("Press Ctrl-C to stop and to delete everything.")
            playground.run(seconds)
            print_note("stopping")
    except KeyboardInterrupt:
        pass
    return Exit.DONE
