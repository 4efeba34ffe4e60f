"""`tenure demo`: a playground in which every page of the dashboard has something true to show."""

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
        typer.Option("--port", min=0, help="The dashboard's port; else 8400, or a free one."),
    ] = None,
    *,
    seconds: Annotated[
        float | None,
        typer.Option("--for", metavar="SECONDS", min=0, help="How long; else until Ctrl-C."),
    ] = None,
) -> int:
    """Run a small shop with a private PostgreSQL, workers, a scheduler and the dashboard. It fails,
    retries and loses a worker for real; at its end nothing is left of it."""
    from tenure._local_postgres import find_binaries

    if missing := [name for name in _SERVED_BY if find_spec(name) is None]:
        raise CommandError(
            "the dashboard cannot be served",
            f"there is no {' and no '.join(missing)}",
            'install what it needs: pip install "tenure[server,binary]"',
        )
    if find_binaries() is None:
        raise CommandError(
            "there is no database to play with",
            "no PostgreSQL server, 15 or newer, is installed here",
            "install one: apt-get install postgresql (Fedora: dnf install postgresql-server)",
        )
    from tenure.demo.playground import Playground

    # As Ctrl-C, also where whoever started it had that ignored.
    for sign in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(sign, signal.default_int_handler)
    print_note("starting a database, a server, two workers and a shop; a few seconds")
    try:
        with Playground(port=port, say=print_note) as playground:
            print_note(f"dashboard: {playground.link}")
            print_note(f"logs:      {playground.directory}")
            print_note("Ctrl-C ends all of it, and nothing is left.")
            playground.run(seconds)
            print_note("ending")
    except KeyboardInterrupt:
        pass
    return Exit.DONE
