"""`python -m proof.schedules.oracle [--short] [--seed N]`: the rules of time against an oracle.

The oracle walks minute by minute through UTC and looks at what the zone's clock shows. A rhythm
has each minute at which the clock shows one of its times. Fixed times belong to a clock that only
goes forward: what it shows again is passed over, and what it left out is made up for at once.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from proof.schedules.plain_cron import plain
from proof.schedules.transitions import MINUTE, transitions
from tenure._model.schedule import Timing
from tenure._rules.timing import between, following, last

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from proof.schedules.plain_cron import PlainCron
    from proof.schedules.transitions import Transition

AROUND = timedelta(hours=26)
# The clock that only goes forward is wound up before the window: no change is larger, but for a
# change of the date itself.
WINDING = 300
SHORT = 20
DAY = 24 * 60
EXPRESSIONS = [
    # Times of day, at and around where clocks change.
    *("0 0 * * *", "30 0 * * *", "0 1 * * *", "30 1 * * *", "0 2 * * *", "30 2 * * *"),
    *("0 3 * * *", "59 1 * * *", "1 3 * * *", "59 23 * * *", "30 23 * * *", "45 2 * * *"),
    # Lists, ranges and steps of fixed times.
    *("0,30 2 * * *", "15,45 1,2,3 * * *", "0-59 2 * * *", "0-30/10 0-3 * * *", "0 0-23 * * *"),
    *("5/20 1-4/2 * * *", "0 0,12 * * *", "29,31 23,0,1 * * *", "0 1-3 * * 0", "10 0/3 * * *"),
    # Rhythms.
    *("* * * * *", "*/5 * * * *", "*/7 * * * *", "*/30 * * * *", "0 * * * *", "30 * * * *"),
    *(
        "15,45 * * * *",
        "*/15 2 * * *",
        "* 1-3 * * *",
        "0 */2 * * *",
        "17 */3 * * *",
        "*/20 0 * * *",
    ),
    *("10-50/20 * * * *", "59 */1 * * *", "*/45 23,0,1 * * *"),
    # Days of the week and of the month, in either relation.
    *("30 2 * * SUN", "0 2 * * 7", "30 0 * * SAT,SUN", "0 0 * * MON-FRI", "*/30 * * * 0"),
    *(
        "30 2 1,15,L * *",
        "0 0 L * *",
        "0 1 LW * *",
        "30 1 * * 0L",
        "0 2 * * SUN#2",
        "0 3 */2 * 6#1",
    ),
    *("30 2 8-14 * SUN", "15 2 * MAR,OCT,NOV SUN", "0 0 29 2 *", "0,30 */1 25-31 3,10 0"),
]


@dataclass(frozen=True, slots=True)
class Difference:
    """What the rules and the oracle do not agree on."""

    zone: str
    change_at: datetime
    expression: str
    queries: str
    oracle: str
    rules: str


@dataclass(slots=True)
class Counts:
    """How much was compared."""

    minutes: int = 0
    ticks: int = 0
    queries: Counter[str] = field(default_factory=Counter)


class Walk:
    """The minutes around a change, and what the zone's clock shows at each of them.

    What it shows is counted in minutes of the calendar, as if no clock ever changed.
    """

    def __init__(self, change: Transition) -> None:
        zone = ZoneInfo(change.zone)
        self.begin, self.end = change.at - AROUND, change.at + AROUND
        count = int((self.end - self.begin) / MINUTE) + WINDING
        first = self.end - (count - 1) * MINUTE
        self.minutes = [first + number * MINUTE for number in range(count)]
        self.shown = [_calendar(at.astimezone(zone)) for at in self.minutes]

    def ticks(self, cron: PlainCron) -> list[datetime]:
        """The expression's ticks after the window's begin and up to its end."""
        days = range(min(self.shown) // DAY, max(self.shown) // DAY + 1)
        on = {day: cron.on(date.fromordinal(day)) for day in days}
        minutes, hours = cron.minutes(), cron.hours()

        def has(shown: int) -> bool:
            return shown % 60 in minutes and shown // 60 % 24 in hours and on[shown // DAY]

        if cron.fixed:
            found = self._once(has)
        else:
            found = [at for at, shown in zip(self.minutes, self.shown, strict=True) if has(shown)]
        return [at for at in found if at > self.begin]

    def _once(self, has: Callable[[int], bool]) -> list[datetime]:
        found = []
        reached = self.shown[0] - 1
        for at, shown in zip(self.minutes, self.shown, strict=True):
            passed = range(reached + 1, shown + 1)  # one, all that a gap left out, or none again
            if any(map(has, passed)):
                found.append(at)
            reached = max(reached, shown)
        return found


def _calendar(shown: datetime) -> int:
    return shown.toordinal() * DAY + shown.hour * 60 + shown.minute


def samples(change: Transition, draw: random.Random) -> list[datetime]:
    """Instants to ask from: all around the change, inside what it repeats, and anywhere."""
    by = abs(change.after - change.before)
    near = [-by, -by / 2, -MINUTE, timedelta(0), MINUTE, by / 2, by - MINUTE, by, by + MINUTE]
    odd = [timedelta(seconds=draw.randint(-7200, 7200), microseconds=draw.randint(0, 999_999))]
    far = [timedelta(minutes=draw.randint(-1500, 1500)) for _ in range(3)]
    return [change.at + one for one in (*near, *odd, *far)]


def check(
    changes: list[Transition],
    expressions: list[str],
    *,
    seed: int = 0,
    counts: Counts | None = None,
) -> list[Difference]:
    """Where the rules and the oracle differ: in a window, after instants and up to them."""
    counts = counts if counts is not None else Counts()
    draw = random.Random(seed)  # noqa: S311 - a sample, repeatable by its seed
    crons = {expression: plain(expression) for expression in expressions}
    found: list[Difference] = []
    for change in changes:
        walk = Walk(change)
        started_at = samples(change, draw)
        for expression, cron in crons.items():
            wanted = walk.ticks(cron)
            timing = Timing(cron=expression, zone=change.zone)
            counts.minutes += len(walk.minutes)
            counts.ticks += len(wanted)
            given = list(between(timing, walk.begin, walk.end))
            pairs = [("between", str(wanted), str(given))] if wanted != given else []
            for at in started_at:
                pairs += _query(timing, wanted, walk, at, counts)
            found += [Difference(change.zone, change.at, expression, *pair) for pair in pairs]
    return found


def _query(
    timing: Timing, wanted: list[datetime], walk: Walk, at: datetime, counts: Counts
) -> list[tuple[str, str, str]]:
    """The next tick after an instant and the last up to it, if they are in the window."""
    later = bisect_right(wanted, at)
    earlier = later - 1
    found = []
    counts.queries["following"] += 1
    given = following(timing, at)
    if later < len(wanted):
        if given != wanted[later]:
            found.append((f"following {at}", str(wanted[later]), str(given)))
    elif given is not None and given <= walk.end:
        found.append((f"following {at}", "none in the window", str(given)))
    counts.queries["last"] += 1
    given = last(timing, at)
    if earlier >= 0:
        if given != wanted[earlier]:
            found.append((f"last {at}", str(wanted[earlier]), str(given)))
    elif given is not None and given > walk.begin:
        found.append((f"last {at}", "none in the window", str(given)))
    return found


def some(changes: list[Transition], seed: int) -> list[Transition]:
    """A twentieth of them, from where the seed says."""
    return changes[seed % SHORT :: SHORT]


def main(argv: list[str]) -> int:
    """Compare all of it, or a twentieth; 1 if there is a difference."""
    parser = argparse.ArgumentParser(prog="just prove schedules oracle", description=__doc__)
    parser.add_argument("--short", action="store_true", help="a twentieth of the changes")
    parser.add_argument("--seed", type=int, default=0, help="which twentieth, and which instants")
    options = parser.parse_args(argv)
    begun = time.monotonic()
    changes = transitions() if options.short else transitions(timedelta(hours=1))
    print(f"{len(changes)} distinct changes of clocks, 2020 to 2035", flush=True)
    if options.short:
        changes = some(changes, options.seed)
    counts = Counts()
    found = check(changes, EXPRESSIONS, seed=options.seed, counts=counts)
    print(
        f"{len(changes)} changes × {len(EXPRESSIONS)} expressions: {counts.minutes:,} minutes and "
        f"{counts.ticks:,} ticks compared, {counts.queries['following']:,} next and "
        f"{counts.queries['last']:,} last ticks asked for; {len(found)} differences; "
        f"{time.monotonic() - begun:.0f} s"
    )
    for one in found[:20]:
        print(one)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
