"""The audit: what operators did. The commands themselves write most of its rows."""

from collections.abc import Sequence

from tenure._model.audit import AuditPage, AuditRow, By
from tenure._store.postgres.rows import LAST_ID
from tenure._store.postgres.statements import QueryBase
from tenure._store.steps import Op

# Of one target there are few changes: so many are gone through at once.
_OF_A_TARGET = 1000
# Of all others, the stretch of ids that is searched for a page.
_SEARCHED = 100_000


class AuditQueries(QueryBase):
    """The part of the store that records what operators did, and lists it."""

    def record(self, by: By, action: str, targets: Sequence[str]) -> Op[None]:
        """Record what an operator did by a verb that takes no `By`, in its transaction."""
        return self._audit(by, action, targets)

    def list(
        self, target: str, *, count: int = 100, before: int | None = None
    ) -> Op[Sequence[AuditRow]]:
        """What was done to a target, newest first, below an id."""
        last = LAST_ID if before is None else before
        rows = yield self._query("list_audit", target=target, before=last, count=count)
        return [AuditRow(**row) for row in rows]

    def search(
        self,
        *,
        target: str | None = None,
        actor: str | None = None,
        source: str | None = None,
        action: str | None = None,
        enqueued: bool = True,
        count: int = 100,
        before: int | None = None,
    ) -> Op[AuditPage]:
        """What was done, newest first, below an id. What is searched is bounded."""
        below = LAST_ID if before is None else before
        if target is not None:
            rows = yield self._query("list_audit", target=target, before=below, count=_OF_A_TARGET)
            found = [
                row
                for row in (AuditRow(**row) for row in rows)
                if (actor is None or actor in row.actor)
                and source in (None, row.source)
                and (action is None or f"{row.action}.".startswith(f"{action}."))
                and (enqueued or row.action != "enqueue")
            ]
            end = rows[-1]["id"] if len(rows) == _OF_A_TARGET else None
            return _audit_page(found, len(rows), end, count)
        newest = yield self._query("newest_audit", before=below)
        if not newest:
            return AuditPage([], 0, None)
        first = newest[0]["id"]
        lowest = max(1, first + 1 - _SEARCHED)
        rows = yield self._query(
            "search_audit",
            before=first + 1,
            lowest=lowest,
            count=count + 1,
            actor=actor,
            source=source,
            action=action,
            enqueued=enqueued,
        )
        found = [AuditRow(**row) for row in rows]
        searched = first + 1 - (lowest if len(found) <= count else found[count - 1].id)
        return _audit_page(found, searched, lowest if lowest > 1 else None, count)


def _audit_page(found: Sequence[AuditRow], searched: int, end: int | None, count: int) -> AuditPage:
    """The first `count` of what was found; there may be more below the last, or below the end."""
    page = found[:count]
    return AuditPage(page, searched, page[-1].id if len(found) > count else end)
