"""The accounts after a part: what clients were told and handlers wrote, against what the server
that leads in the end has."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from proof.crash import jobs

if TYPE_CHECKING:
    from proof.failover.book import Book
    from proof.failover.harness import Bed
    from proof.report import Report

JOBS = """
SELECT j.key, j.id, j.state FROM tenure.job AS j
UNION ALL SELECT a.key, a.id, a.state FROM tenure.job_archive AS a
UNION ALL SELECT f.key, f.id, 'failed' FROM tenure.job_failed AS f
"""
_COMPLETED = """
SELECT a.job_id, count(*), max(a.token), max(f.token), max(t.token)
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
WHERE f.task = %(task)s AND f.result IS DISTINCT FROM to_jsonb(f.token)
"""
_ENTERING = "SELECT id FROM tenure.job_archive WHERE task = ANY (%(tasks)s)"


def lost(bed: Bed, book: Book) -> list[str]:
    """Keys whose acknowledged job is not there, or is another's now."""
    there = {(key, job_id) for key, job_id, _ in bed.rows(JOBS)}
    return sorted(key for key, job_id in book.current.items() if (key, job_id) not in there)


def settle(bed: Bed, report: Report) -> None:
    """Hold the server that leads in the end to all that was promised, whatever was lost before
    it was told of it."""
    book = bed.book()
    report.jobs += len(book.current)
    report.note("jobs acknowledged", len(book.current))
    rows = bed.rows(JOBS)
    tell_keys(report, book, rows)
    report.none("acknowledged jobs lost", lost(bed, book))
    keys = Counter(key for key, _, _ in rows)
    report.none("keys with two jobs", [key for key, count in keys.items() if count > 1])
    report.none("jobs without a request", keys.keys() - book.requested)
    report.none("jobs not completed", [row for row in rows if row[2] in ("failed", "cancelled")])
    # Their end was waited for, and not for ever.
    live = [row for row in rows if row[2] in ("queued", "running")]
    report.none("jobs that are still to end", live, timed=True)
    _results(bed, report)


def tell_keys(report: Report, book: Book, rows: list[tuple[Any, ...]]) -> None:
    """Every key is seen through, so what was asked for is what there is."""
    # A client that was stopped kept asking for a minute and a half. Of a key without an answer it
    # is not known whether there is a job.
    report.none("keys that were never acknowledged", book.unanswered, timed=True)
    apart = abs(len(rows) - len(book.requested)) - len(book.unanswered)
    report.at_most("jobs more or fewer than keys asked for", max(0, apart), 0)


def _results(bed: Bed, report: Report) -> None:
    found = {row[0]: row[1:] for row in bed.rows(_COMPLETED)}
    report.none("jobs with two completed attempts", [j for j, row in found.items() if row[0] != 1])
    report.none(
        "results not by the last token",
        [j for j, (_, token, filed, last) in found.items() if not token == filed == last],
    )
    # The handler returns its own token: whose result it is shows in the result itself.
    report.none("results of another running period", bed.rows(_FOREIGN, task=jobs.answer.name))
    ledger = bed.rows("SELECT job_id, token FROM ledger")
    effects = Counter(job for job, _ in ledger)
    entering = bed.rows(_ENTERING, tasks=list(jobs.ENTERING))
    report.none("jobs without exactly one ledger row", [j for (j,) in entering if effects[j] != 1])
    completed = {(job, row[1]) for job, row in found.items()}
    report.none("ledger rows by a lease that was lost", set(ledger) - completed)
    begun = Counter(bed.history.periods("begun"))
    report.none("fences handed out twice", [p for p, count in begun.items() if count > 1])


def effects_lost(bed: Bed) -> list[tuple[int, int]]:
    """Running periods whose handlers saw their COMMIT answered, and whose row is not there."""
    ledger = set(bed.rows("SELECT job_id, token FROM ledger"))
    return sorted(set(bed.history.periods("left")) - ledger)
