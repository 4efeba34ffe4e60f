"""How long a pause lasts, as a form asks for it: in minutes from now, in whatever zone one is."""

from datetime import UTC, datetime, timedelta

from tenure.server.pages.forms import Fields, asked, written
from tenure.server.problems import Problem
from tenure.server.shapes.installation import PauseIn

_LONGEST = 6


def pause(fields: Fields) -> PauseIn:
    """For so many minutes; until resumed, if none are said."""
    minutes = written(fields, "minutes")
    until = None
    if minutes is not None:
        if not (minutes.isascii() and minutes.isdigit() and len(minutes) <= _LONGEST):
            raise Problem("invalid", "for how long is a number of minutes")
        until = datetime.now(UTC) + timedelta(minutes=int(minutes))
    return asked(PauseIn, until=until, reason=written(fields, "reason"))
