"""`tenure schedule`: its commands by name."""

import typer

from tenure.cli.grouping import Commands
from tenure.cli.schedule import backfilling, defining, looking, steering

app: typer.Typer = typer.Typer(
    cls=Commands, name="schedule", help="Schedules: make them, look at them, steer them."
)
app.command("list")(looking.list_schedules)
app.command("show")(looking.show)
app.command("preview")(looking.preview)
app.command("create")(defining.create)
app.command("update")(defining.update)
app.command("pause")(steering.pause)
app.command("resume")(steering.resume)
app.command("delete")(steering.delete)
app.command("run")(steering.run)
app.command("backfill")(backfilling.backfill)
