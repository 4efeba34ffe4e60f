"""What every store can show of leases, queues, schedules and the audit. A part of the port."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tenure._model.ids import WorkerId
    from tenure._model.sights import AuditPage, Lately, LeaseRow, Paces
    from tenure._model.system import System
    from tenure._store.port import Op


class SightStore(Protocol):
    """What people look at. None of it goes through an unbounded set."""

    def leases(
        self, *, worker: WorkerId | None = None, queue: str | None = None, count: int = 100
    ) -> Op[Sequence[LeaseRow]]:
        """Leases of running jobs, those that end first before others."""

    def paces(self, queues: Sequence[str], *, minutes: int = 30) -> Op[Paces]:
        """What ended in each of these queues over the last minutes, from the counts per minute."""

    def lately(self, names: Sequence[str], *, count: int = 20) -> Op[Mapping[str, Lately]]:
        """What each of these schedules came to."""

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

    def system(self) -> Op[System]:
        """What the installation stands on."""
