"""Counts per minute: folded from ended attempts, and read. What is counted live is in `depths`."""

from datetime import datetime, timedelta

from tenure._model.stats import Stats
from tenure._model.vitals import Totals
from tenure._rules import folding, stats, totals
from tenure._rules.folding import Folding
from tenure._rules.histograms import BOUNDS
from tenure._store.port import Ddl, Op, atomically
from tenure._store.postgres.base import Base

# The time between an attempt's `ended_at` and the first write of its transaction, at the most: a
# statement of ours takes 10 seconds.
_LAG = timedelta(seconds=10)


class Rollups(Base):
    """The part of the store that counts what has ended."""

    def fold(self) -> Op[int]:
        """Fold the next closed minute, and one again that is whole by now; answers with how many
        minutes that were, 0 if there was none or another folder is at it."""
        return atomically(self._fold())

    def _fold(self) -> Op[int]:
        # A minute that takes longer than a statement may would never be folded.
        yield Ddl("SET LOCAL statement_timeout = 0")
        rows = yield self._query("lock_rollups", lag=_LAG)
        if not rows:
            yield self._query("begin_rollups")
            return 0
        [row] = rows
        was = Folding(row["final_to"], row["marked_to"], row["folded_to"])
        closed_to, whole = row["closed_to"], row["whole"]
        folded = yield from self._fold_first(was.folded_to, closed_to)
        again = (yield from self._fold_first(was.final_to, was.marked_to)) if whole else None
        now, mark_anew = folding.moved(
            was, closed_to=closed_to, folded=folded, whole=whole, again=again
        )
        if now != was:
            yield self._query(
                "move_rollups",
                final_to=now.final_to,
                marked_to=now.marked_to,
                folded_to=now.folded_to,
                mark_anew=mark_anew,
            )
        return (folded is not None) + (again is not None)

    def _fold_first(self, since: datetime, until: datetime) -> Op[datetime | None]:
        if not since < until:
            return None
        rows = yield self._query("fold", since=since, until=until, bounds=[*map(str, BOUNDS)])
        return rows[0]["minute"] if rows else None

    def stats(
        self,
        *,
        queue: str | None = None,
        task: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        step: timedelta = folding.MINUTE,
    ) -> Op[Stats]:
        """What ended over a time, from the counts per minute."""
        [at] = yield self._query("folded")
        asked = stats.span(at["now"], since, until, step)
        rows = yield self._query(
            "stats",
            since=asked.since,
            until=asked.until,
            step=step,
            queue=queue or "",
            task=task or "",
        )
        return stats.stats(asked, rows, at["folded_to"])

    def totals(self, since: datetime | None = None) -> Op[Totals]:
        """What ended from an instant on, by queue and task, from the counts per minute."""
        [at] = yield self._query("folded")
        asked = totals.span(at["now"], since, folded_to=at["folded_to"], final_to=at["final_to"])
        rows = yield self._query(
            "totals", since=asked.since, settled_to=asked.settled_to, until=asked.until
        )
        return totals.totals(asked, rows)
