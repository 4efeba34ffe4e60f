"""`tenure server`: the queue as a service over HTTP."""

from typing import Annotated

import typer

from tenure.cli.exits import Exit
from tenure.cli.failure import Failure
from tenure.cli.options import ColourName, LogFormat, LogLevel


def server(
    host: Annotated[
        str | None, typer.Option("--host", help="The address to listen on; else loopback alone.")
    ] = None,
    port: Annotated[int | None, typer.Option("--port", help="The port to listen on.")] = None,
    *,
    name: Annotated[
        str | None, typer.Option("--name", help="Its name, for its database connections.")
    ] = None,
    environment: Annotated[
        str | None,
        typer.Option("--environment", help="The word beside the name on the dashboard."),
    ] = None,
    environment_colour: Annotated[
        ColourName | None, typer.Option("--environment-colour", help="Its colour; else grey.")
    ] = None,
    log_level: LogLevel = None,
    log_format: LogFormat = None,
) -> int:
    """Serve the API, the worker protocol and the dashboard until told to stop. Every request needs
    an access token; where there is none yet, one is made and printed, once."""
    from tenure import Tenure, sources
    from tenure.cli.words import say
    from tenure.worker.listener import listening
    from tenure.worker.speaking import speak

    try:
        from tenure.server.badge import Badge
        from tenure.server.running import first_token, serve
    except ModuleNotFoundError as error:
        raise Failure(
            "the server cannot be loaded", str(error), 'install it: pip install "tenure[server]"'
        ) from error
    speak(sources.setting("log_level", log_level), sources.setting("log_format", log_format))
    address, number = sources.setting("host", host), sources.setting("port", port)
    app = Tenure()
    app.engine.run(app.engine.check_schema())
    on = listening(address, number, said_by="--host or --port")
    secret = first_token(app, address)
    if secret is not None:
        say(f"There was no access token. This one is for everything and lasts a day: {secret}")
    say(f"http://{address}:{number}")
    word = sources.setting("environment", environment)
    colour = sources.setting("environment_colour", environment_colour)
    badge = Badge(word, colour) if word else None
    serve(app, on=on, name=name or "server", badge=badge)
    return Exit.DONE
