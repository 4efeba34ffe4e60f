"""How far minutes are folded: what one pass of the folder moves, and when a minute is whole."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Folding:
    """Before `final_to` minutes are whole. Up to `marked_to` they are folded once more when all
    that was running at the mark has ended; up to `folded_to` they wait for a mark."""

    final_to: datetime
    marked_to: datetime
    folded_to: datetime


def moved(
    folding: Folding,
    *,
    closed_to: datetime,
    folded: datetime | None,
    whole: bool,
    again: datetime | None,
) -> tuple[Folding, bool]:
    """Where folding is after a pass, and whether a mark is to be taken anew.

    The pass folded the minute `folded` for the first time, and, if what the mark waits for is
    `whole`, the minute `again` for the last time; None: nothing was left to fold.
    """
    folding = replace(folding, folded_to=closed_to if folded is None else folded + MINUTE)
    if whole:
        final_to = folding.marked_to if again is None else again + MINUTE
        folding = replace(folding, final_to=final_to)
    if folding.final_to < folding.marked_to or folding.marked_to == folding.folded_to:
        return folding, False
    return replace(folding, marked_to=folding.folded_to), True
