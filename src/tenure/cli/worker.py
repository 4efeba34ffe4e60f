"""`tenure worker` and `tenure probe`: running a worker, and asking whether one is well."""

from typing import Annotated

import typer

from tenure.cli import probe as prober
from tenure.cli.options import (
    AsJson,
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
    return prober.probe(prober.Asked(name, as_json))
