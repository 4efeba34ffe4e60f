"""`tenure job`: its commands by name. They are in `enqueue`, `looking`, `watching` and
`steering`."""

import typer

from tenure.cli import enqueue, looking, steering, watching
from tenure.cli.grouping import Commands

app: typer.Typer = typer.Typer(
    cls=Commands, name="job", help="Jobs: enqueue them, look at them, steer them."
)
app.command("enqueue")(enqueue.enqueue)
app.command("list")(looking.list_jobs)
app.command("show")(looking.show)
app.command("why")(looking.why)
app.command("watch")(watching.watch)
app.command("retry")(steering.retry)
app.command("cancel")(steering.cancel)
app.command("revoke")(steering.revoke)
app.command("hold")(steering.hold)
app.command("resume")(steering.resume)
app.command("move")(steering.move)
app.command("delete")(steering.delete)
