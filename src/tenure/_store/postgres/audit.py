"""The audit log. Most of its rows are written by the commands themselves."""

from collections.abc import Sequence

from tenure._model.audit import AuditPage, AuditRow, By
from tenure._model.ids import Json
from tenure._store.postgres.rows import LAST_ID
from tenure._store.postgres.statements import QueryBase
from tenure._store.steps import Op

# A target has few changes, so we read this many rows at a time and filter them.
_OF_A_TARGET = 1000
# Without a target, how many ids each page searches.
_SEARCHED = 100_000


class AuditQueries(QueryBase):
    def record(
        self, by: By, action: str, targets: Sequence[str], *, after: Json = None
    ) -> Op[None]:
        """Record an operator's action in that action's transaction, if its method takes no `By`."""
        return self._audit(by, action, targets, after=after)

    def list(
        self, target: str, *, count: int = 100, before: int | None = None
    ) -> Op[Sequence[AuditRow]]:
        """Return the actions on a target, newest first, with ids below `before`."""
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
        """Return a page of audit rows with ids below `before`, newest first.

        The search is bounded.
        """
        below = LAST_ID if before is None else before
        if target is not None:
            rows = yield self._query("list_audit", target=target, before=below, count=_OF_A_TARGET)
            matches = [
                row
                for row in (AuditRow(**row) for row in rows)
                if (actor is None or actor in row.actor)
                and source in (None, row.source)
                and (action is None or f"{row.action}.".startswith(f"{action}."))
                and (enqueued or row.action != "enqueue")
            ]
            end = rows[-1]["id"] if len(rows) == _OF_A_TARGET else None
            return _audit_page(matches, len(rows), end, count)
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
        matches = [AuditRow(**row) for row in rows]
        searched = first + 1 - (lowest if len(matches) <= count else matches[count - 1].id)
        return _audit_page(matches, searched, lowest if lowest > 1 else None, count)


def _audit_page(rows: Sequence[AuditRow], searched: int, end: int | None, count: int) -> AuditPage:
    """Return a page of up to `count` rows, and the id below which the next page starts."""
    page = rows[:count]
    return AuditPage(page, searched, page[-1].id if len(rows) > count else end)
