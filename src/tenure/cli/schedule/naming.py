"""A schedule by its name, as the commands take it."""

from typing import TYPE_CHECKING, Annotated

import typer

from tenure.cli.exits import Exit
from tenure.cli.failure import Failure

if TYPE_CHECKING:
    from tenure.admin import Admin, ScheduleRow

Name = Annotated[str, typer.Argument(metavar="NAME", help="The schedule's name.")]


def known(admin: "Admin", name: str) -> "ScheduleRow":
    """The schedule of this name; a failure with what to do if there is none."""
    row = admin.schedules.get(name)
    if row is None:
        raise Failure(
            f"there is no schedule {name}",
            "it never was, it was deleted, or no worker of its program has started yet",
            "see which there are: tenure schedule list",
            Exit.NOT_FOUND,
        )
    return row
