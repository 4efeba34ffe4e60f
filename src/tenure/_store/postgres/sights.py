"""What people look at beside jobs: leases, queues minute by minute, schedules, the audit. Each look
is bounded."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tenure._model.audit import AuditRow
from tenure._model.ids import JobId, WorkerId
from tenure._model.job import State
from tenure._model.sights import AuditPage, Lately, LeaseRow, Pace, Paces
from tenure._model.stats import COUNTED
from tenure._model.system import Durability, History, System
from tenure._rules.folding import MINUTE
from tenure._store.port import Op, Row
from tenure._store.postgres.base import LAST_ID, tick_row
from tenure._store.postgres.conditions import Conditions
from tenure._store.postgres.glances import Glances
from tenure._store.postgres.upkeep import kept

if TYPE_CHECKING:
    from datetime import datetime

    from tenure._model.schedule import TickRow

# Of one target there are few changes: so many are gone through at once.
_OF_A_TARGET = 1000
_HOLDERS = 5
# Of all others, the stretch of ids that is searched for a page.
_SEARCHED = 100_000


class Sights(Glances, Conditions):
    """The part of the store that is looked at."""

    def leases(
        self, *, worker: WorkerId | None = None, queue: str | None = None, count: int = 100
    ) -> Op[Sequence[LeaseRow]]:
        """Leases of running jobs, those that end first before others."""
        rows = yield self._query("leases", worker=worker, queue=queue, most=COUNTED, count=count)
        return [_lease(row) for row in rows]

    def paces(self, queues: Sequence[str], *, minutes: int = 30) -> Op[Paces]:
        """What ended in each of these queues over the last minutes, from the counts per minute."""
        [at] = yield self._query("folded")
        until: datetime = at["now"].replace(second=0, microsecond=0)
        since = until - minutes * MINUTE
        rows = yield self._query("queue_minutes", queues=list(queues), since=since)
        counted = {name: ([0] * minutes, [0] * minutes) for name in queues}
        for row in rows:
            completed, failed = counted[row["queue"]]
            if (nth := (row["minute"] - since) // MINUTE) < minutes:
                completed[nth], failed[nth] = row["completed"], row["failed"]
        paces = {name: Pace(*both) for name, both in counted.items()}
        return Paces(since, until, at["folded_to"], paces)

    def lately(self, names: Sequence[str], *, count: int = 20) -> Op[Mapping[str, Lately]]:
        """What each of these schedules came to."""
        ticks: dict[str, list[TickRow]] = {name: [] for name in names}
        for row in (yield self._query("last_ticks", names=list(names), count=count)):
            ticks[row["schedule"]].append(tick_row(row))
        last = {
            name: next((tick.job_id for tick in of if tick.job_id is not None), None)
            for name, of in ticks.items()
        }
        ids = [job_id for job_id in last.values() if job_id is not None]
        rows = (yield self._query("states", ids=ids)) if ids else []
        states = {JobId(row["id"]): State(row["state"]) for row in rows}
        return {
            name: Lately(of, None if (job_id := last[name]) is None else states.get(job_id))
            for name, of in ticks.items()
        }

    def search_audit(
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

    def system(self) -> Op[System]:
        """What the installation stands on: the server, its durability, history and its keepers."""
        server = yield from self.condition()
        [standbys] = yield self._query("standbys")
        holders = yield from self.holders(count=_HOLDERS)
        set_days = yield from self.settings()
        keeps = {
            "job_archive": kept(set_days, "keep_archive_days"),
            "attempt": kept(set_days, "keep_attempts_days"),
        }
        histories = yield self._query("histories")
        return System(
            version=server.version,
            role=server.role,
            durability=Durability(
                fsync=server.settings["fsync"].value == "on",
                full_page_writes=server.settings["full_page_writes"].value == "on",
                synchronous_commit=server.settings["synchronous_commit"].value,
                standby_names=standbys["names"],
                standbys=standbys["connected"],
            ),
            holders=holders,
            histories=[History(**row, keep=keeps[row["name"]]) for row in histories],
        )


def _audit_page(found: Sequence[AuditRow], searched: int, end: int | None, count: int) -> AuditPage:
    """The first `count` of what was found; there may be more below the last, or below the end."""
    page = found[:count]
    return AuditPage(page, searched, page[-1].id if len(found) > count else end)


def _lease(row: Row) -> LeaseRow:
    return LeaseRow(
        job_id=JobId(row["id"]),
        queue=row["queue"],
        task=row["task"],
        attempt=row["attempt"],
        max_attempts=row["max_attempts"],
        worker=WorkerId(row["claimed_by"]),
        claimed_at=row["claimed_at"],
        expires_at=row["lease_expires_at"],
        length=row["length"],
        remaining=row["remaining"],
        renewals=row["renewals"],
        cancel_requested=row["cancel_requested"],
    )
