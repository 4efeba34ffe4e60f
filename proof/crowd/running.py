"""Fifty workers of a hundred slots hold 5,000 running jobs of ten seconds each for five minutes,
with the lease as it is by default, and lose none."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING

from proof.crowd.hiring import hired, sleeper

if TYPE_CHECKING:
    from proof.report import Report
    from support.workers import Bed

_SLOTS = 100
_SECONDS = 10.0
_AHEAD = 2000
_FILL_WITHIN = 120.0


def run(bed: Bed, report: Report, *, short: bool) -> None:
    """Ten workers for twenty seconds in the short form."""
    workers, seconds = (10, 20.0) if short else (50, 300.0)
    crowd = _Crowd(bed, workers)
    crowd.feed()
    with hired(bed, workers=workers, slots=_SLOTS):
        crowd.hold(seconds)
        crowd.tell(report)


class _Crowd:
    """The workers, the backlog before them, and what is seen of them once a second."""

    def __init__(self, bed: Bed, workers: int) -> None:
        self._bed = bed
        self._workers = workers
        self._running: list[int] = []

    @property
    def _places(self) -> int:
        """How many jobs can run at once."""
        return self._workers * _SLOTS

    def feed(self) -> None:
        """Keep a backlog."""
        queued = self._bed.count("SELECT count(*) FROM tenure.job WHERE state = 'queued'")
        while queued < _AHEAD:
            queued += len(self._bed.enqueue([sleeper.bind(_SECONDS)] * 1000))

    def _look(self) -> int:
        """How many jobs run."""
        return self._bed.count("SELECT count(*) FROM tenure.job WHERE state = 'running'")

    def hold(self, seconds: float) -> None:
        """Feed and look until this long after all places were taken for the first time."""
        until = time.monotonic() + _FILL_WITHIN
        while self._look() < self._places:
            self.feed()
            if time.monotonic() > until:
                raise AssertionError(f"{self._look()} of {self._places} places taken, no more")
            time.sleep(0.2)
        began = time.monotonic()
        while time.monotonic() < began + seconds:
            self.feed()
            self._running.append(self._look())
            time.sleep(max(0.0, began + len(self._running) - time.monotonic()))

    def tell(self, report: Report) -> None:
        """What was seen, and whether a lease was lost."""
        bed = self._bed
        active = [row for row in bed.workers() if row.state == "active"]
        endings = bed.endings()
        report.at_least("workers active on the registry", len(active), self._workers)
        report.note("running by the registry", sum(row.running for row in active))
        report.note("running by the second, fewest", min(self._running))
        median = int(statistics.median(self._running))
        report.at_least("running by the second, median", median, self._places)
        report.note("seconds watched", len(self._running))
        report.note("jobs completed", endings.pop("completed", 0))
        renewals = "SELECT coalesce(sum(renewals), 0) FROM tenure.attempt"
        report.note("renewals of those", bed.count(renewals))
        report.at_most("attempts that ended in any other way", sum(endings.values()), 0)
        late = "SELECT count(*) FROM tenure.attempt WHERE late"
        report.at_most("results after the lease's end", bed.count(late), 0)
        losses = "SELECT count(*) FROM tenure.job WHERE deaths > 0"
        report.at_most("live jobs with a loss", bed.count(losses), 0)
