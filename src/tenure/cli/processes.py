"""`tenure worker`, `tenure scheduler` and `tenure server`."""

from typing import Annotated

import typer

from tenure.cli import probe as prober
from tenure.cli.errors import CommandError, Exit
from tenure.cli.options import (
    AsJson,
    ColourName,
    Concurrency,
    Grace,
    LoadTimeout,
    LogFormat,
    LogLevel,
    MaxJobs,
    MaxMemory,
    MetricsHost,
    MetricsPort,
    Processes,
    Queues,
    Target,
    names,
)
from tenure.errors import TenureError


def worker(
    target: Target = None,
    *,
    queues: Queues = None,
    concurrency: Concurrency = None,
    processes: Processes = None,
    drain: Annotated[
        bool, typer.Option("--drain", help="Run until the queues are empty, and exit.")
    ] = False,
    grace: Grace = None,
    load_timeout: LoadTimeout = None,
    max_jobs: MaxJobs = None,
    max_memory: MaxMemory = None,
    name: Annotated[
        str | None,
        typer.Option("--name", help="The worker's name in lists and for the probe."),
    ] = None,
    schedules: Annotated[
        bool | None,
        typer.Option("--schedules/--no-schedules", help="Whether to fire schedules too; else yes."),
    ] = None,
    log_level: LogLevel = None,
    log_format: LogFormat = None,
    metrics_host: MetricsHost = None,
    metrics_port: MetricsPort = None,
) -> int:
    """Run jobs until told to stop. One SIGTERM drains, a second one forces."""
    from tenure.worker import main

    return main(
        target,
        queues=names(queues),
        concurrency=concurrency,
        processes=processes,
        drain=drain,
        grace=grace,
        load_timeout=load_timeout,
        max_jobs=max_jobs,
        max_memory=max_memory,
        name=name,
        schedules=schedules,
        log_level=log_level,
        log_format=log_format,
        metrics_host=metrics_host,
        metrics_port=metrics_port,
    )


def probe(
    *,
    name: Annotated[
        str | None, typer.Option("--name", help="Ask for the worker of this name alone.")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Say whether a worker of this user is alive on this machine: 0 if so, else 1."""
    return prober.probe(prober.ProbeOptions(name, as_json))


def scheduler(
    target: Target = None,
    *,
    name: Annotated[
        str | None, typer.Option("--name", help="Its name, for its database connections.")
    ] = None,
    log_level: LogLevel = None,
    log_format: LogFormat = None,
    metrics_host: MetricsHost = None,
    metrics_port: MetricsPort = None,
) -> int:
    """Fire the app's schedules until told to stop, and run no jobs. Every worker fires them too."""
    from tenure import _settings
    from tenure.worker.loader import describe_load_error, load
    from tenure.worker.log_format import configure_logging
    from tenure.worker.scheduler_process import main

    configure_logging(
        _settings.resolve("log_level", log_level), _settings.resolve("log_format", log_format)
    )
    try:
        app = load(_settings.target(target))
    except TenureError:
        raise
    except Exception as error:
        raise CommandError(
            "the app cannot be loaded", describe_load_error(error), "mend that"
        ) from error
    main(app, name=name, metrics_host=metrics_host, metrics_port=metrics_port)
    return Exit.DONE


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
    from tenure import Tenure, _settings
    from tenure.cli.output import print_note
    from tenure.worker.log_format import configure_logging
    from tenure.worker.observability import open_socket

    try:
        from tenure.server import Badge
        from tenure.server.serve import first_token, serve
    except ModuleNotFoundError as error:
        raise CommandError(
            "the server cannot be loaded", str(error), 'install it: pip install "tenure[server]"'
        ) from error
    configure_logging(
        _settings.resolve("log_level", log_level), _settings.resolve("log_format", log_format)
    )
    address, number = _settings.resolve("host", host), _settings.resolve("port", port)
    app = Tenure()
    app.engine.run(app.engine.store.schema.check())
    on = open_socket(address, number, said_by="--host or --port")
    secret = first_token(app, address)
    if secret is not None:
        print_note(
            f"There was no access token. This one is for everything and lasts a day: {secret}"
        )
    print_note(f"http://{address}:{number}")
    word = _settings.resolve("environment", environment)
    colour = _settings.resolve("environment_colour", environment_colour)
    badge = Badge(word, colour) if word else None
    serve(app, on=on, name=name or "server", badge=badge)
    return Exit.DONE
