"""The schedules of a run, which every worker fires: what they should have come to, against the jobs
and the rows of ticks that there are."""

from __future__ import annotations

from contextlib import closing
from datetime import timedelta
from typing import TYPE_CHECKING

from proof.faults import jobs
from proof.schedules import checker, rows
from proof.schedules.targets import Stretch, Target
from support.processes import wait_for
from tenure import Tenure
from tenure._model.audit import By

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_BY = By("proof", reason="the run is over")
_WITHIN = 60.0
# A scheduler may sleep this long between its judgement and the row that says so.
_SLACK = timedelta(seconds=5 * jobs.LEASE)


class Ticks:
    """From before the first worker, which declares the schedules, until they are paused."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._began_at = self._sure = rows.now(url)
        self._declared = jobs.app.declared

    def end(self, supervise: Callable[[], None]) -> bool:
        """Have all ticks up to now accounted for, and no more fired; False if they never were."""
        self._sure = rows.now(self._url)

        def caught_up_by_now() -> bool:
            supervise()
            return rows.caught_up(self._url, self._sure)

        caught_up = wait_for(caught_up_by_now, _WITHIN)
        with closing(Tenure(self._url)) as app:
            for name in self._declared:
                app.admin.schedules.pause(name, _BY)
        return caught_up

    def check(self) -> checker.Findings:
        """Each tick has one job, or one row that says why not. Those of the time in which they were
        being paused are not looked at."""
        sure = self._sure
        runs = (r for r in rows.runs(self._url) if r.tick_at is None or r.tick_at <= sure)
        answer = (row for row in rows.records(self._url) if row.fire_at <= sure)
        return checker.check(self._targets(), runs, answer, slack=_SLACK)

    def _targets(self) -> Iterator[Target]:
        lives = rows.lives(self._url)
        for name, new in self._declared.items():
            life = Stretch(
                new.timing,
                new.policy,
                after=self._began_at,
                sure=self._sure,
                until=self._sure,
                sure_after=lives[name].created_at,
            )
            yield Target(name, [life])
