"""Dead letters by what they have in common: their task, and the signature of their error."""

from collections import Counter
from collections.abc import Sequence

from tenure._model.stats import COUNTED, HOURS, Count, FailedGroup
from tenure._store.port import Op, Row, Rows
from tenure._store.postgres.base import Base
from tenure._store.postgres.depths import bounded

_MOST = COUNTED + 1
# So many of each group are looked at for when they ended.
_NEWEST = 250


class FailedGroups(Base):
    """The part of the store that groups dead letters."""

    def failed_groups(
        self,
        *,
        queue: str | None = None,
        task: str | None = None,
        count: int,
        after: tuple[str, str | None] | None = None,
    ) -> Op[Sequence[FailedGroup]]:
        """Dead letters by task and error signature, in this order, above one of them. Of one queue,
        among the 10,000 of its dead letters that are found first. When they ended is asked for
        apart: a dead letter that is retried in between is in the count, and not in the hours."""
        after_task, after_signature = after or (task or "", "")
        asked = {
            "task": task,
            "after_task": after_task,
            "after_signature": after_signature,
            "count": count,
            "most": _MOST,
        }
        if queue is None:
            rows = yield self._query("failed_groups", **asked)
        else:
            rows = yield self._query("failed_groups_of", queue=queue, **asked)
        if not rows:
            return []
        hours = yield self._query(
            "failed_hours",
            tasks=[row["task"] for row in rows],
            signatures=[row["signature"] for row in rows],
            queue=queue,
            most=_NEWEST,
        )
        return [
            _group(row, tally) for row, tally in zip(rows, _hourly(hours, len(rows)), strict=True)
        ]


def _hourly(rows: Rows, groups: int) -> Sequence[Sequence[int]]:
    """By group, hour by hour, the oldest first."""
    ended = Counter({(row["nth"], row["ago"]): row["ended"] for row in rows})
    return [[ended[nth, ago] for ago in reversed(range(HOURS))] for nth in range(1, groups + 1)]


def _group(row: Row, hours: Sequence[int]) -> FailedGroup:
    """Of a queue, a group as far as it was found: where not all of the queue's were looked at there
    may be more of each."""
    found = {name: value for name, value in row.items() if name != "searched"}
    count = bounded(row["count"], COUNTED)
    if "searched" in row:
        count = Count(row["count"], more=row["searched"] > COUNTED)
    return FailedGroup(**found | {"count": count, "hours": hours})
