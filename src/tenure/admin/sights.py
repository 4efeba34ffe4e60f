"""What an operator can look at beside jobs and figures: leases, the pace of queues, the audit, what
the installation stands on. Nothing here changes anything; each look is bounded."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from tenure._model.ids import WorkerId
from tenure._model.sights import AuditPage, LeaseRow, Paces
from tenure._model.system import System
from tenure._store.port import Op
from tenure.admin.faces import Twin, Verb, Verbs
from tenure.errors import InvalidValue

_LONGEST_PAGE = 1000
_MOST_QUEUES = 500
_MOST_MINUTES = 24 * 60


class Sights(Verbs):
    """The verbs that show."""

    @Verb
    def leases(
        self, *, worker: UUID | None = None, queue: str | None = None, count: int = 100
    ) -> Op[Sequence[LeaseRow]]:
        """Leases of running jobs, those that end first before others: of a worker, of a queue, or
        of all. They are looked for among the 10,000 that end first."""
        _check_count(count)
        of = None if worker is None else WorkerId(worker)
        return self._store.leases(worker=of, queue=queue, count=count)

    aleases: Final = Twin(leases)

    @Verb
    def paces(self, queues: Sequence[str], *, minutes: int = 30) -> Op[Paces]:
        """What completed and failed in each of these queues, at most 500, over the last minutes.
        A minute is counted some ten seconds after its end."""
        if len(queues) > _MOST_QUEUES:
            raise InvalidValue(f"{len(queues):,} queues are more than {_MOST_QUEUES} at once")
        if not 1 <= minutes <= _MOST_MINUTES:
            raise InvalidValue(f"{minutes} minutes are not within 1 to {_MOST_MINUTES:,}")
        return self._store.paces(queues, minutes=minutes)

    apaces: Final = Twin(paces)

    @Verb
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
        """What was done, newest first, below an id: to a target, by who has `actor` in the name,
        from a source, by an action (`queue.pause`) or all of a kind (`queue`); with the jobs that
        were enqueued over HTTP, or without. Some 100,000 rows are searched at a time, so that a
        page may come short."""
        _check_count(count)
        return self._store.search_audit(
            target=target,
            actor=actor,
            source=source,
            action=action,
            enqueued=enqueued,
            count=count,
            before=before,
        )

    asearch_audit: Final = Twin(search_audit)

    @Verb
    def system(self) -> Op[System]:
        """What the installation stands on: the server, how durable a commit is, who keeps dead rows
        from being removed, how many days of history there are."""
        return self._store.system()

    asystem: Final = Twin(system)


def _check_count(count: int) -> None:
    if not 1 <= count <= _LONGEST_PAGE:
        raise InvalidValue(f"a page of {count} is not within 1 to {_LONGEST_PAGE:,}")
