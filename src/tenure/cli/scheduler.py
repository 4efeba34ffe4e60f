"""`tenure scheduler`: firing schedules, and nothing else."""

from typing import Annotated

import typer

from tenure.cli.exits import Exit
from tenure.cli.failure import Failure
from tenure.cli.options import LogLevel, Target
from tenure.errors import TenureError


def scheduler(
    target: Target = None,
    *,
    name: Annotated[
        str | None, typer.Option("--name", help="Its name, for its database connections.")
    ] = None,
    log_level: LogLevel = None,
) -> int:
    """Fire the app's schedules until told to stop, and run no jobs. Every worker fires them too."""
    from tenure import sources
    from tenure.schedule import main
    from tenure.worker.loading import broken, load
    from tenure.worker.processes import speak

    speak(sources.setting("log_level", log_level))
    try:
        app = load(sources.target(target))
    except TenureError:
        raise
    except Exception as error:
        raise Failure("the app cannot be loaded", broken(error), "mend that") from error
    main(app, name=name)
    return Exit.DONE
