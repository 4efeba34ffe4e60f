"""What an operator can see in figures: what ended, how much waits, how dead letters group, and
why a job is not running. Nothing here changes anything, or counts an unbounded set."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from tenure._model.standing import Standing
from tenure._model.stats import Depth, FailedGroup, Stats
from tenure._model.vitals import Lateness, Storage, Totals
from tenure._rules import ids, paging
from tenure._rules import standing as rules
from tenure._store.port import Op
from tenure.admin.faces import Twin, Verb, Verbs
from tenure.config import duration
from tenure.errors import InvalidValue
from tenure.task import Seconds

_LONGEST_PAGE = 1000


@dataclass(frozen=True, slots=True)
class FailedGroups:
    """A page of groups, by task and signature. `next` is None at the end alone."""

    groups: Sequence[FailedGroup]
    next: str | None


class Figures(Verbs):
    """The verbs that count and explain."""

    @Verb
    def stats(
        self,
        *,
        queue: str | None = None,
        task: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        step: Seconds = 60,
    ) -> Op[Stats]:
        """What ended over a time, whole and in steps of whole minutes: outcomes, and how long
        attempts waited and ran. By default the hour up to the last whole minute, minute by minute.
        A minute is counted some ten seconds after its end."""
        return self._store.stats(
            queue=queue, task=task, since=since, until=until, step=duration(step)
        )

    astats: Final = Twin(stats)

    @Verb
    def depths(self) -> Op[Sequence[Depth]]:
        """How much there is in each known queue: exact up to 10,000 each, zeros too."""
        return self._store.depths()

    adepths: Final = Twin(depths)

    @Verb
    def totals(self, since: datetime | None = None) -> Op[Totals]:
        """What ended from an instant on, by queue and task, for who counts on: the next time from
        `settled_to`. Without an instant, of the last hour: to begin with."""
        return self._store.totals(since)

    atotals: Final = Twin(totals)

    @Verb
    def lateness(self) -> Op[Lateness]:
        """What should have been done and was not: leases to end, schedules, operations; and what
        the ticks of the last hour came to."""
        return self._store.lateness()

    alateness: Final = Twin(lateness)

    @Verb
    def storage(self) -> Op[Storage]:
        """How large the tables are, their dead rows, and what keeps those from being removed."""
        return self._store.storage()

    astorage: Final = Twin(storage)

    @Verb
    def failed_groups(
        self,
        *,
        queue: str | None = None,
        task: str | None = None,
        count: int = 50,
        after: str | None = None,
    ) -> Op[FailedGroups]:
        """Dead letters by task and error signature, in this order, counted up to 10,000 each;
        `after` is the last page's `next`. Of one queue some 10,000 are looked at in all, and the
        counts say whether there are more."""
        if not 1 <= count <= _LONGEST_PAGE:
            raise InvalidValue(f"a page of {count} is not within 1 to {_LONGEST_PAGE:,}")
        place = None if after is None else paging.group(after)
        groups = yield from self._store.failed_groups(
            queue=queue, task=task, count=count, after=place
        )
        full = len(groups) == count
        last = paging.group_token(groups[-1].task, groups[-1].signature) if full else None
        return FailedGroups(groups, last)

    afailed_groups: Final = Twin(failed_groups)

    @Verb
    def why(self, job_id: int | str) -> Op[Standing]:
        """Where a job stands: why it is not running, or who runs it, or how it ended."""
        said = ids.job_id(job_id)
        facts = yield from self._store.facts(said)
        return rules.nowhere(said) if facts is None else rules.standing(facts)

    awhy: Final = Twin(why)
