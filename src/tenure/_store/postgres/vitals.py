"""How an installation fares: what is late, how the tables are kept. Each figure is bounded."""

from datetime import timedelta

from tenure._model.schedule import TickOutcome, TickReason
from tenure._model.stats import COUNTED
from tenure._model.vitals import Lateness, Storage, TableSize, TickCount
from tenure._store.port import Op
from tenure._store.postgres.base import Base
from tenure._store.postgres.depths import bounded

_LATELY = timedelta(hours=1)
_SCHEDULES = 1000
# One for each minute of the hour; a schedule that ticks more often is counted by its last ones.
_TICKS = 60
_NOT = timedelta(0)


class Vitals(Base):
    """The part of the store that is asked how it fares."""

    def lateness(self) -> Op[Lateness]:
        """What should have been done and was not, and what became of the last hour's ticks."""
        [row] = yield self._query("lateness", most=COUNTED + 1)
        ticks = yield self._query(
            "recent_ticks", within=_LATELY, schedules=_SCHEDULES, ticks=_TICKS
        )
        return Lateness(
            lease=row["lease"] or _NOT,
            schedule=row["schedule"] or _NOT,
            schedules=bounded(row["schedules"]),
            # An operation's next chunk is in the future as long as somebody does it.
            operation=max(row["operation"] or _NOT, _NOT),
            operations=bounded(row["operations"]),
            items_left=int(row["items_left"]),
            ticks=[
                TickCount(
                    TickOutcome(tick["outcome"]),
                    None if tick["reason"] is None else TickReason(tick["reason"]),
                    tick["count"],
                )
                for tick in ticks
            ],
        )

    def storage(self) -> Op[Storage]:
        """How large our tables are, their dead rows, and what keeps those from being removed."""
        tables = yield self._query("tables")
        [row] = yield self._query("horizon")
        sizes = [TableSize(**table) for table in tables]
        return Storage(sizes, row["horizon"], row["oldest"])
