"""What every store can count, and tell of where a job stands. A part of the port."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from tenure._model.stats import COUNTED

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime, timedelta

    from tenure._model.ids import JobId
    from tenure._model.standing import Facts
    from tenure._model.stats import Depth, FailedGroup, Stats
    from tenure._model.vitals import Lateness, Storage, Totals
    from tenure._store.port import Op


class CountStore(Protocol):
    """Counts of what has ended and of what is there. None goes through an unbounded set."""

    def fold(self) -> Op[int]:
        """Fold the next closed minute, and one again that is whole by now; answers with how many
        minutes that were, 0 if there was none or another folder is at it."""

    def stats(
        self,
        *,
        queue: str | None = None,
        task: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        step: timedelta,
    ) -> Op[Stats]:
        """What ended over a time, from the counts per minute."""

    def totals(self, since: datetime | None = None) -> Op[Totals]:
        """What ended from an instant on, by queue and task, from the counts per minute; without
        one, the last hour, which tells from when on to ask."""

    def lateness(self) -> Op[Lateness]:
        """What should have been done and was not, and what became of the last hour's ticks."""

    def storage(self) -> Op[Storage]:
        """How large our tables are, their dead rows, and what keeps those from being removed."""

    def depths(self, *, most: int = COUNTED) -> Op[Sequence[Depth]]:
        """How much there is in each known queue, by name, up to so much; the empty ones too."""

    def failed_groups(
        self,
        *,
        queue: str | None = None,
        task: str | None = None,
        count: int,
        after: tuple[str, str | None] | None = None,
    ) -> Op[Sequence[FailedGroup]]:
        """Dead letters by task and error signature, in this order, above one of them. Of one queue,
        among the 10,000 of its dead letters that are found first."""

    def facts(self, job_id: JobId) -> Op[Facts | None]:
        """What decides where a job stands now; None if there is no such job."""
