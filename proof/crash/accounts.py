"""The accounts after a part: the store's word against the ledger and the handlers' own history."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from proof.crash import jobs, through
from proof.crash.history import REFUSED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from proof.crash.harness import Bed
    from proof.report import Report

_COMPLETED = """
SELECT a.job_id, count(*), max(a.token), max(f.token), max(t.token), bool_or(a.late)
FROM tenure.attempt AS a
LEFT JOIN tenure.job_archive AS f ON f.id = a.job_id AND f.state = 'completed'
CROSS JOIN LATERAL (
    SELECT max(t.token) AS token FROM tenure.attempt AS t WHERE t.job_id = a.job_id
) AS t
WHERE a.outcome = 'completed'
GROUP BY a.job_id
"""
_FOREIGN = """
SELECT f.id, f.token, f.result
FROM tenure.job_archive AS f
WHERE f.task = ANY (%(tasks)s) AND f.result IS DISTINCT FROM to_jsonb(f.token)
"""
_LIVE = "SELECT id FROM tenure.job WHERE id = ANY (%(ids)s)"
_OVERLAPS = """
SELECT p.job_id, p.token
FROM (
    SELECT a.job_id, a.token, a.started_at,
        lag(a.ended_at) OVER (PARTITION BY a.job_id ORDER BY a.token) AS before
    FROM tenure.attempt AS a
) AS p
WHERE p.started_at < p.before
"""


def settle(
    bed: Bed,
    report: Report,
    *,
    answering: Sequence[str] = (jobs.answer.name,),
    entering: Sequence[str] | None = (*jobs.ENTERING, *through.ENTERING),
) -> None:
    """Hold every job to its promise: completed once, by its last token, its effect once; the
    effects of handlers that enter nothing (None) are judged elsewhere."""
    report.none("workers that ended by themselves", bed.fleet.deserted)
    report.note("jobs that were to complete", len(bed.enqueued))
    found = {row[0]: row[1:] for row in bed.rows(_COMPLETED)}
    live = {job for (job,) in bed.rows(_LIVE, ids=bed.enqueued)}
    report.none("jobs not completed", set(bed.enqueued) - found.keys() - live)
    # Their end was waited for, and not for ever.
    report.none("jobs that are still to end", live, timed=True)
    report.none("dead letters", bed.rows("SELECT id, task, done_reason FROM tenure.job_failed"))
    report.none("jobs with two completed attempts", [j for j, row in found.items() if row[0] != 1])
    report.none(
        "results not by the last token",
        [j for j, (_, token, filed, last, _) in found.items() if not token == filed == last],
    )
    # The handler returns its own token: whose result it is shows in the result itself.
    report.none("results of another running period", bed.rows(_FOREIGN, tasks=[*answering]))
    report.none("running periods of one job that overlap", bed.rows(_OVERLAPS))
    late = sum(1 for row in found.values() if row[4])
    begun = Counter(bed.history.periods("begun"))
    report.none("running periods begun twice", [p for p, count in begun.items() if count > 1])
    if entering is not None:
        _ledger(bed, report, entering, {(job, row[1]) for job, row in found.items()})
    report.note("late results, accepted as no other worker had taken the job", late)
    [(refused,)] = bed.rows("SELECT count(*) FROM tenure.attempt WHERE refused_result IS NOT NULL")
    stale = len(bed.history.periods(REFUSED))
    report.note("stale results refused (by the settler, in transactions)", refused + stale)


def _ledger(
    bed: Bed, report: Report, tasks: Sequence[str], completed: set[tuple[int, int]]
) -> None:
    rows = [(job, token) for job, token in bed.rows("SELECT job_id, token FROM ledger")]
    entering = bed.rows(
        "SELECT id FROM tenure.job_archive WHERE task = ANY (%(tasks)s)",
        tasks=[*tasks],
    )
    effects = Counter(job for job, _ in rows)
    report.none("jobs without exactly one ledger row", [j for (j,) in entering if effects[j] != 1])
    report.none("ledger rows by a lease that was lost", set(rows) - completed)
    report.none(
        "effects that handlers saw committed and the ledger has not",
        set(bed.history.periods("left")) - set(rows),
    )
    report.none(
        "ledger rows that no handler says it wrote",
        set(rows) - set(bed.history.periods("written")),
    )
