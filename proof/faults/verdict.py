"""After a run: what clients and handlers saw, what the store says and what the ledgers hold, put
together for each job and given to the checker."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import psycopg

from proof.checker.check import check_all
from proof.checker.endings import ending_kind
from proof.checker.events import Event, Final, JobHistory, Violation
from proof.checker.lifecycle import DEATHS, ENDED, OWN, SHARED, UNCHARGED, bounds
from proof.checker.whole import conserved
from proof.faults import grants, history, jobs
from proof.faults.witness import TAKEN

if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Set as AbstractSet

    from proof.faults.harness import Bed
    from proof.faults.witness import Witness

_FINALS = """
SELECT id, state, token, task, (args ->> 'label')::bigint, result, NULL,
    attempt, losses, NULL, NULL
FROM tenure.job_archive
UNION ALL
SELECT id, 'failed', token, task, (args ->> 'label')::bigint, NULL, done_reason,
    attempt, losses, worker_losses, deaths
FROM tenure.job_failed
UNION ALL
SELECT id, state, token, task, (args ->> 'label')::bigint, NULL, NULL,
    attempt, losses, worker_losses, deaths
FROM tenure.job
"""
_ATTEMPTS = """
SELECT job_id, token, outcome, error_type, error_message
FROM tenure.attempt ORDER BY job_id, token
"""
_REFUSED = "SELECT count(*) FROM tenure.attempt WHERE refused_result IS NOT NULL"
# By the word of the rows of ticks, so that a job of theirs that is gone is missed.
_SCHEDULED = "SELECT count(*) FROM tenure.schedule_tick WHERE job_id IS NOT NULL"
# When a schedule's job was made is for the rows of ticks to say.
_FIRED = Event("enqueue", 0.0, math.inf, answer=history.UNKNOWN)
_LATE = "SELECT count(*) FROM tenure.attempt WHERE late"


@dataclass(slots=True)
class Verdict:
    """The result of a run."""

    states: Counter[str] = field(default_factory=Counter)
    endings: Counter[str] = field(default_factory=Counter)
    violations: list[Violation] = field(default_factory=list)
    acknowledged: int = 0
    unknown: int = 0
    scheduled: int = 0
    refused: int = 0
    late: int = 0
    extended: int = 0
    # Tokens of periods, by job, whose loss must not count; None where the clock cannot tell.
    uncounted: dict[int, set[int]] | None = None
    # The counters of each job when its row went, where they were noted and not all 0.
    counters: dict[int, tuple[int, int, int]] | None = None

    @property
    def jobs(self) -> int:
        """How many jobs there are."""
        return self.states.total()


def reach(bed: Bed, witness: Witness | None) -> Verdict:
    """Put it together, and judge."""
    verdict = Verdict()
    if witness is not None:
        seen = history.events(bed.history)
        verdict.violations += witness.violations(bed.rows(TAKEN), seen)
        extensions = bed.rows(grants.GRANTS)
        verdict.extended = len(extensions)
        verdict.violations += grants.revived(extensions)
        losses = (grants.Loss(*row) for row in bed.rows(grants.LOSSES))
        verdict.uncounted = grants.uncounted(losses, extensions, witness.starts)
        verdict.counters = {job_id: (*rest,) for job_id, *rest in bed.rows(grants.COUNTS)}
    [(verdict.scheduled,)] = bed.rows(_SCHEDULED)
    verdict.violations += check_all(_histories(bed, verdict))
    verdict.violations += _effects(bed)
    verdict.violations += conserved(
        enqueued=verdict.acknowledged + verdict.scheduled,
        states=verdict.states,
        unknown=verdict.unknown,
    )
    [(verdict.refused,)] = bed.rows(_REFUSED)
    [(verdict.late,)] = bed.rows(_LATE)
    return verdict


def _histories(bed: Bed, verdict: Verdict) -> Iterator[JobHistory]:
    seen = history.events(bed.history)
    enqueues = history.Enqueues(bed.history)
    attempts: dict[int, list[tuple[int, str]]] = defaultdict(list)
    for job_id, token, outcome, error_type, message in bed.rows(_ATTEMPTS):
        attempts[job_id].append((token, ending_kind(outcome, error_type, message)))
        verdict.endings[outcome] += 1
    entries: dict[int, list[int]] = defaultdict(list)
    for job_id, token in bed.rows("SELECT job_id, token FROM ledger"):
        entries[job_id].append(token)
    labels: dict[int, int] = {}
    for job_id, state, token, task, label, result, reason, *counters in bed.rows(_FINALS):
        verdict.states[state] += 1
        if label == jobs.SCHEDULED:
            request = [_FIRED]
        else:
            if label in labels:
                twice = f"label {label} has two jobs"
                verdict.violations.append(Violation("I10", job_id, twice))
            if label not in enqueues.requested:
                verdict.violations.append(Violation("I10", job_id, f"no request for {label}"))
            labels[label] = job_id
            request = enqueues.requested[label]
        final = Final(
            state=state,
            token=token,
            attempts=tuple(attempts.pop(job_id, ())),
            result=result,
            entries=tuple(entries.pop(job_id, ())),
            writes=task in jobs.ENTERING,
            reason=reason,
        )
        if verdict.uncounted is not None:
            wrong = excuses(final, verdict.uncounted.get(job_id, set()))
            verdict.violations += (Violation("I9", job_id, what) for what in wrong)
        if task != jobs.fall.name:
            if state == "completed" and verdict.counters is not None:
                # A completion counts nothing: what was noted before it is what holds.
                counters[1:] = verdict.counters.get(job_id, (0, 0, 0))
            wrong = counts(final, Counts(*counters))
            verdict.violations += (Violation("I9", job_id, what) for what in wrong)
        events = (*request, *seen.pop(job_id, ()))
        caps = jobs.CAPS.get(task, (jobs.OFTEN, jobs.OFTEN))
        yield JobHistory(job_id, events, final, *caps)
    verdict.acknowledged = len(enqueues.acknowledged)
    verdict.unknown = len(enqueues.requested) - verdict.acknowledged
    for label, job_id in enqueues.acknowledged.items():
        if labels.get(label) != job_id:
            gone = Final("gone", 0, tuple(attempts.pop(job_id, ())), None, ())
            yield JobHistory(job_id, (*enqueues.requested[label], *seen.pop(job_id, ())), gone)
    for label, job_id in enqueues.contradicted:
        other = f"label {label} was acknowledged before, as {enqueues.acknowledged[label]}"
        verdict.violations.append(Violation("I10", job_id, other))
    # What is left belongs to no job that there is or was.
    for job_id in {*attempts, *entries, *seen}:
        verdict.violations.append(Violation("I10", job_id, "it left traces without a job"))


def excuses(final: Final, uncounted: AbstractSet[int]) -> Iterator[str]:
    """A rescue counts nothing if, and only if, the server itself started since the last grant."""
    for token, outcome in final.attempts:
        if outcome == "excused" and token not in uncounted:
            yield f"the loss of {token} is excused, and the server did not start"
        if outcome in {"expired", "unbegun"} and token in uncounted:
            yield f"the loss of {token} is counted ({outcome}), and the server had started"


class Counts(NamedTuple):
    """The job's own counters; the archive has only the first two."""

    charged: int
    losses: int
    worker_losses: int | None = None
    deaths: int | None = None


def counts(final: Final, counters: Counts) -> Iterator[str]:
    """What is wrong with a job's own counters, by the endings of its periods in this one life."""
    outcomes = [outcome for _, outcome in final.attempts]
    kept = sum(outcome not in UNCHARGED for outcome in outcomes)
    # What ends the job is not given back to it any more; nor is what still runs.
    ends = final.state in ENDED and outcomes and outcomes[-1] in UNCHARGED
    kept += bool(ends) + (final.state == "running")
    if counters.charged != kept:
        made = ", ".join(outcomes)
        yield f"{counters.charged} attempts are charged, and {kept} were made: {made}"
    died = sum(outcome in DEATHS for outcome in outcomes)
    counted = (
        ("losses", counters.losses, bounds(outcomes, OWN)),
        ("worker losses", counters.worker_losses, bounds(outcomes, SHARED)),
        ("deaths", counters.deaths, (died, died)),
    )
    for name, count, (low, high) in counted:
        if count is not None and not low <= count <= high:
            had = f"{low} to {high}" if low < high else f"{low}"
            yield f"{count} {name} are counted, and it had {had}: {', '.join(outcomes)}"
    if counters.worker_losses is not None and "lost" not in outcomes:
        reported = counters.losses + counters.worker_losses + outcomes.count("unbegun")
        if reported != died:
            yield f"{reported} losses of all kinds are counted, and it had {died}"


def _effects(bed: Bed) -> Iterator[Violation]:
    """What the other server holds against what handlers wrote down, in its order."""
    written = Counter(
        (job_id, event.token)
        for job_id, events in history.events(bed.history).items()
        for event in events
        if event.what == "effect"
    )
    with psycopg.connect(bed.effects_url) as connection:
        held = Counter(connection.execute("SELECT job_id, token FROM effect").fetchall())
    for period, count in written.items():
        if held[period] < count:
            yield Violation("I4", period[0], f"effects of token {period[1]} are missing")
    completed = bed.rows(
        "SELECT id, token FROM tenure.job_archive WHERE state = 'completed' AND task = %(task)s",
        task=jobs.touch.name,
    )
    for job_id, token in completed:
        if not held[job_id, token]:
            yield Violation("I4", job_id, f"completed by {token}, which left no effect")
