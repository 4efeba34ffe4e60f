"""`tenure server`: the queue as a service over HTTP."""

from typing import Annotated

import typer

from tenure.cli.exits import Exit
from tenure.cli.failure import Failure
from tenure.cli.options import LogLevel


def server(
    host: Annotated[
        str | None, typer.Option("--host", help="The address to listen on; else loopback alone.")
    ] = None,
    port: Annotated[int | None, typer.Option("--port", help="The port to listen on.")] = None,
    *,
    name: Annotated[
        str | None, typer.Option("--name", help="Its name, for its database connections.")
    ] = None,
    log_level: LogLevel = None,
) -> int:
    """Serve the API and the worker protocol until told to stop. Every request needs an access
    token; where there is none yet, one is made and printed, once."""
    from tenure import Tenure, sources
    from tenure.cli.words import say
    from tenure.worker.processes import speak

    try:
        from tenure.server.running import first_token, listening, serve
    except ModuleNotFoundError as error:
        raise Failure(
            "the server cannot be loaded", str(error), 'install it: pip install "tenure[server]"'
        ) from error
    speak(sources.setting("log_level", log_level))
    address, number = sources.setting("host", host), sources.setting("port", port)
    app = Tenure()
    app.engine.run(app.engine.check_schema())
    on = listening(address, number)
    secret = first_token(app, address)
    if secret is not None:
        say(f"There was no access token. This one is for everything and lasts a day: {secret}")
    say(f"http://{address}:{number}")
    serve(app, on=on, name=name or "server")
    return Exit.DONE
