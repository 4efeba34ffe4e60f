"""`tenure worker`, `tenure scheduler`, `tenure server` and `tenure probe`."""

import sys
from datetime import timedelta
from typing import Annotated

import typer

from tenure.cli import probe as prober
from tenure.cli import server_options
from tenure.cli.errors import CommandError, Exit
from tenure.cli.options import (
    AsJson,
    ColourName,
    Concurrency,
    Kinds,
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
    duration_option,
    grace_option,
    kind_names,
    parse_duration,
    queue_names,
)
from tenure.errors import TenureError

Grace = Annotated[float | None, grace_option("Give running jobs this long to finish on SIGTERM.")]


def worker(
    target: Target = None,
    *,
    queues: Queues = None,
    kinds: Kinds = None,
    concurrency: Concurrency = None,
    processes: Processes = None,
    drain: Annotated[bool, typer.Option("--drain", help="Exit once the queues are empty.")] = False,
    lease: Annotated[
        timedelta | None,
        duration_option(
            "--lease",
            "Claim every job with this lease, such as 60s.",
            parser=parse_duration,
            show_default="the job's",
        ),
    ] = None,
    grace: Grace = None,
    load_timeout: LoadTimeout = None,
    max_jobs: MaxJobs = None,
    max_memory: MaxMemory = None,
    name: Annotated[
        str | None,
        typer.Option(
            "--name",
            metavar="NAME",
            help="Name the worker, for `worker list` and `tenure probe`.",
            show_default="host and pid",
        ),
    ] = None,
    schedules: Annotated[
        bool | None,
        typer.Option(
            "--schedules/--no-schedules",
            help="Fire schedules too.",
            show_default="yes, but not with --drain",
        ),
    ] = None,
    log_level: LogLevel = None,
    log_format: LogFormat = None,
    metrics_host: MetricsHost = None,
    metrics_port: MetricsPort = None,
) -> int:
    """Run jobs until stopped.

    The first SIGTERM drains the worker: it takes no new jobs, and running jobs have `--grace` to
    finish. A second SIGTERM stops it immediately. Workers also run schedules by default.

    To manage running workers: `tenure worker list`, `show` and `drain`.
    """
    from tenure.worker import main

    return main(
        target,
        queues=queue_names(queues),
        kinds=kind_names(kinds),
        concurrency=concurrency,
        processes=processes,
        drain=drain,
        lease=None if lease is None else lease.total_seconds(),
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
        str | None, typer.Option("--name", metavar="NAME", help="Check only this worker.")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Check that the workers on this machine are healthy.

    Exits with 0 if each of your live workers has sent a heartbeat in the last 10 s and had a
    working child in the last minute. Otherwise, exits with 1 and prints the reason. A worker that
    is waiting for the database counts as healthy. The command is meant for liveness probes: it
    reads state files, doesn't query the database, and responds within 0.1 s. The files are in
    `TENURE_RUN_DIR` (default: `$XDG_RUNTIME_DIR/tenure`, or `/tmp/tenure-UID`).

    JSON: `healthy`, `directory` and `workers`.
    """
    return prober.probe(prober.ProbeOptions(name, as_json))


def scheduler(
    target: Target = None,
    *,
    name: Annotated[
        str | None,
        typer.Option(
            "--name",
            metavar="NAME",
            help="Name its database connections.",
            show_default="host and pid",
        ),
    ] = None,
    log_level: LogLevel = None,
    log_format: LogFormat = None,
    metrics_host: MetricsHost = None,
    metrics_port: MetricsPort = None,
) -> int:
    """Fire schedules without running jobs.

    Stores the app's schedules and fires all due schedules in the database. Workers do this too, so
    you need a scheduler only if workers come and go, or if they run with `--no-schedules`. You can
    run several schedulers: each scheduled run still creates only one job. If the database is
    unreachable, the scheduler waits for it. SIGTERM stops the scheduler within a second.
    `tenure probe` doesn't check it.
    """
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
            "the app cannot be loaded", describe_load_error(error), "fix the error, and start again"
        ) from error
    main(app, name=name, metrics_host=metrics_host, metrics_port=metrics_port)
    return Exit.DONE


def server(
    host: Annotated[
        str | None,
        typer.Option(
            "--host", metavar="ADDRESS", help="Listen on this address.", show_default="127.0.0.1"
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option("--port", metavar="PORT", help="Listen on this port.", show_default="8400"),
    ] = None,
    *,
    name: Annotated[
        str | None,
        typer.Option(
            "--name",
            metavar="NAME",
            help="Name its database connections.",
            show_default="server",
        ),
    ] = None,
    environment: Annotated[
        str | None,
        typer.Option("--environment", metavar="TEXT", help="Show this name on the dashboard."),
    ] = None,
    environment_colour: Annotated[
        ColourName | None,
        typer.Option(
            "--environment-colour",
            metavar="|".join(ColourName),
            help="Color the environment name.",
            show_default="grey",
        ),
    ] = None,
    max_connections: Annotated[
        int | None,
        typer.Option(
            "--max-connections",
            metavar="N",
            min=1,
            help="Keep at most N connections open.",
            show_default="4096",
        ),
    ] = None,
    max_connections_per_address: Annotated[
        int | None,
        typer.Option(
            "--max-connections-per-address",
            metavar="N",
            min=1,
            help="Keep at most N per client address.",
            show_default="512",
        ),
    ] = None,
    public_url: server_options.PublicUrl = None,
    allowed_hosts: server_options.AllowedHosts = None,
    trusted_proxies: server_options.TrustedProxies = None,
    proxy_user_header: server_options.ProxyUserHeader = None,
    proxy_roles: server_options.ProxyRoles = None,
    session_idle: server_options.SessionIdle = None,
    session_lifetime: server_options.SessionLifetime = None,
    log_level: LogLevel = None,
    log_format: LogFormat = None,
) -> int:
    """Serve the HTTP API, the worker protocol and the dashboard.

    Needs the extra `tenure[server]`. Every request needs an access token. Create one first: `tenure
    token create NAME --scope admin`. If there never was a token, the address is loopback, and you
    start the server at a terminal, it creates one with all scopes, valid for a day, and prints it
    once.

    The server speaks plain HTTP, so put a TLS proxy in front of it and set `--public-url`. Without
    it, a server on a loopback address answers only `localhost` and IP addresses. After SIGTERM,
    open requests have 10 s to finish.

    The server also returns jobs with expired leases to their queues, so if all your workers are
    remote, you don't need another process for that.
    """
    from tenure import Tenure, _settings
    from tenure.cli.output import print_note
    from tenure.worker.log_format import configure_logging
    from tenure.worker.observability import open_socket

    try:
        from tenure.server import Badge
        from tenure.server.serve import first_token, is_loopback, serve
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
    on = open_socket(address, number, options="--host or --port")
    options = server_options.resolve(
        is_loopback=is_loopback(address),
        public_url=public_url,
        allowed_hosts=allowed_hosts,
        trusted_proxies=trusted_proxies,
        proxy_user_header=proxy_user_header,
        proxy_roles=proxy_roles,
        session_idle=session_idle,
        session_lifetime=session_lifetime,
    )
    if options.proxy_user_header is None:
        secret = first_token(app, address, is_terminal=sys.stderr.isatty())
        if secret is not None:
            print_note(f"created the first access token, for everything, valid for a day: {secret}")
        elif not app.admin.tokens.list(count=1, active=True):
            print_note(
                "no access token is valid; create one: tenure token create NAME --role admin"
            )
    print_note(options.public_url or f"http://{address}:{number}")
    text = _settings.resolve("environment", environment)
    colour = _settings.resolve("environment_colour", environment_colour)
    badge = Badge(text, colour) if text else None
    serve(
        app,
        on=on,
        name=name or "server",
        badge=badge,
        max_connections=max_connections,
        max_connections_per_address=max_connections_per_address,
        options=options,
    )
    return Exit.DONE
