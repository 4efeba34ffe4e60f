"""From when to when counts per minute are added to a total, and which are added for good."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from tenure._model.ending import Ending
from tenure._model.vitals import Total, Totals
from tenure._rules.stats import spread

# A minute that is not final by then is added as it is: what commits later is left out, and who
# watches need not read a day of minutes each time because one transaction is open for a day.
_PATIENCE = timedelta(hours=1)
# What is read at once, by who has not asked for long.
_STRETCH = timedelta(hours=6)


@dataclass(frozen=True, slots=True)
class Span:
    """What is asked for; before `settled_to` it is added for good."""

    since: datetime
    settled_to: datetime
    until: datetime
    counts_age: timedelta | None


def span(
    now: datetime,
    since: datetime | None,
    *,
    folded_to: datetime | None,
    final_to: datetime | None,
) -> Span:
    """The minutes to read. Without a beginning the last hour: it tells which queues and tasks there
    are. Where nothing was ever folded, all that comes is to be added."""
    if folded_to is None:
        at = since or now.replace(second=0, microsecond=0)
        return Span(at, at, at, None)
    age = now - folded_to
    if since is None:
        return Span(folded_to - _PATIENCE, folded_to, folded_to, age)
    until = max(since, min(folded_to, since + _STRETCH))
    final = folded_to - _PATIENCE if final_to is None else max(final_to, folded_to - _PATIENCE)
    return Span(since, max(since, min(final, until)), until, age)


def totals(asked: Span, rows: Sequence[Mapping[str, Any]]) -> Totals:
    """The answer, from a row for each queue and task and part."""
    return Totals(
        asked.settled_to,
        [_total(row) for row in rows if row["settled"]],
        [_total(row) for row in rows if not row["settled"]],
        asked.counts_age,
    )


def _total(row: Mapping[str, Any]) -> Total:
    return Total(
        row["queue"],
        row["task"],
        {ending: int(row[ending]) for ending in Ending},
        spread(row["waits"], timedelta(seconds=row["wait_sum"])),
        spread(row["runs"], timedelta(seconds=row["run_sum"])),
    )
