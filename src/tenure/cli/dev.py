"""`tenure dev`: a database, its schema, a worker that reloads, a dashboard; Ctrl-C ends it all."""

from typing import TYPE_CHECKING

from tenure import sources
from tenure.cli.exits import Exit
from tenure.cli.options import Concurrency, Grace, LogLevel, Processes, Queues, Target, names
from tenure.cli.own import Own
from tenure.cli.showing import Showing
from tenure.cli.words import say, tell

if TYPE_CHECKING:
    from tenure.cli.preparing import Prepared


def dev(
    target: Target = None,
    *,
    queues: Queues = None,
    concurrency: Concurrency = None,
    processes: Processes = None,
    grace: Grace = None,
    log_level: LogLevel = None,
) -> int:
    """Run a worker that reloads when the code changes, with all that it needs, and the dashboard.

    If no database is configured, a private PostgreSQL runs as long as this does; its data stay.
    """
    import asyncio

    from tenure.cli.preparing import Broken, prepare
    from tenure.worker import main
    from tenure.worker.changes import Changes

    app, project, served = sources.target(target), sources.project(), names(queues)
    slots = sources.setting("concurrency", concurrency)
    with Own(project / sources.OWN) as own, Showing() as showing:
        while True:
            changes = Changes(project)
            try:
                prepared = prepare(app, own.start_database)
            except Broken as broken:
                tell("the app cannot be loaded", str(broken), "mend that, and save it")
            else:
                say(f"database: {_described(own, prepared)}")
                say(f"schema:   {prepared.schema}, {prepared.migrated}")
                served_by = ", ".join(sources.setting("queues", served) or prepared.queues)
                say(f"worker:   {app}, {slots} slots, queues {served_by}")
                if own.is_first:
                    showing.start(app)
                say("Edit a .py file and it is reloaded. Ctrl-C ends all of it.")
                code = main(
                    app,
                    queues=served,
                    concurrency=slots,
                    processes=processes,
                    grace=grace,
                    log_level=log_level,
                    watched=changes,
                )
                if code != Exit.FAILED:
                    return code
            say("waiting for the next change; Ctrl-C ends")
            asyncio.run(changes.settled())


def _described(own: Own, prepared: "Prepared") -> str:
    if own.where is None:
        return prepared.database
    return f"a private PostgreSQL in {own.where}; programs here find it while this runs"
