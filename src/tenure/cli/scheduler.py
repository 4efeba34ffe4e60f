"""`tenure scheduler`: firing schedules, and nothing else."""

from typing import Annotated

import typer

from tenure.cli.exits import Exit
from tenure.cli.failure import Failure
from tenure.cli.options import LogFormat, LogLevel, MetricsHost, MetricsPort, Target
from tenure.errors import TenureError


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
    from tenure import sources
    from tenure.schedule import main
    from tenure.worker.loading import broken, load
    from tenure.worker.speaking import speak

    speak(sources.setting("log_level", log_level), sources.setting("log_format", log_format))
    try:
        app = load(sources.target(target))
    except TenureError:
        raise
    except Exception as error:
        raise Failure("the app cannot be loaded", broken(error), "mend that") from error
    main(app, name=name, metrics_host=metrics_host, metrics_port=metrics_port)
    return Exit.DONE
