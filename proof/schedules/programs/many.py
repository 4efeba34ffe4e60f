"""A program with many schedules: most of every second, some slower, some by crons; every policy."""

import os
from datetime import timedelta

from tenure import Tenure

app = Tenure(program="proof-many", version=1)
_COUNT = int(os.environ.get("PROOF_SCHEDULES", "1000"))
_EVERY = (1, 1, 1, 1, 1, 1, 1, 2, 3, 1.7)
_CRONS = ("* * * * *", "*/2 * * * *", "0-59 * * * *", "*/1 0-23 * * *")
_ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata")
_SEVENTH = 7


@app.task(name="noop", queue="piled")
def noop(number: int) -> None:
    """No worker runs it."""


for number in range(_COUNT):
    name, args = f"s{number:05d}", {"number": number}
    if number % _SEVENTH == 0:
        which = number // _SEVENTH
        cron, zone = _CRONS[which % len(_CRONS)], _ZONES[which % len(_ZONES)]
        app.schedule(cron, timezone=zone, name=name, args=args, missed="all")(noop)
    elif number % _SEVENTH == 1:
        app.schedule(every=1, name=name, args=args, missed="latest")(noop)
    elif number % _SEVENTH == 2:
        app.schedule(every=2, name=name, args=args, missed="skip")(noop)
    elif number % 50 == 3:
        app.schedule(every=1, name=name, args=args, missed="all", overlap="skip")(noop)
    else:
        every = timedelta(seconds=_EVERY[number % len(_EVERY)])
        app.schedule(every=every, name=name, args=args, missed="all", missed_limit=1000)(noop)
