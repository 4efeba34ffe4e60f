"""Two hundred idle workers and one job at a time: all of them look for it, one of them has it."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

from proof.crash.losses import quantile
from proof.crowd.hiring import hired, sleeper
from support.processes import wait_for

if TYPE_CHECKING:
    from proof.report import Report
    from support.workers import Bed
    from tenure._model.ids import JobId

_JOBS = 20
_REST = 1.0
_END_WITHIN = 30.0
# In seconds, from COMMIT to the claim, while all of them look for the same row.
_LATEST = 2.0
_WAITS = """
SELECT extract(epoch FROM a.started_at - a.due_at)::float8 AS wait
FROM tenure.attempt AS a ORDER BY 1
"""


def run(bed: Bed, report: Report, *, short: bool) -> None:
    """Sixty workers in the short form."""
    workers = 60 if short else 200
    with hired(bed, workers=workers, slots=1):
        for _ in range(_JOBS):
            [job] = bed.enqueue([sleeper.bind(0)])
            wait_for(partial(_ended, bed, job), _END_WITHIN)
            time.sleep(_REST)
        active = sum(row.state == "active" for row in bed.workers())
    waits = [row["wait"] for row in bed.fetch(_WAITS)]
    report.at_least("idle workers, in the end too", active, workers)
    report.at_least("jobs completed", bed.ended(), _JOBS)
    report.at_most("attempts more than jobs", len(waits) - _JOBS, 0)
    report.note("from COMMIT to the claim, p50", quantile(waits, 0.5), " s")
    report.at_most("from COMMIT to the claim, max", quantile(waits, 1.0), _LATEST, " s")


def _ended(bed: Bed, job: JobId) -> bool:
    return bool(bed.attempts(job))
