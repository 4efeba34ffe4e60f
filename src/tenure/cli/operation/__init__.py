"""`tenure operation`: its commands by name."""

import typer

from tenure.cli.grouping import Commands
from tenure.cli.operation import looking, steering

app: typer.Typer = typer.Typer(
    cls=Commands,
    name="operation",
    help="Operations on many jobs: look at them, pause, resume and abort them.",
)
app.command("list")(looking.list_operations)
app.command("show")(looking.show)
app.command("pause")(steering.pause)
app.command("resume")(steering.resume)
app.command("abort")(steering.abort)
