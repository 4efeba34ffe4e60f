"""`just prove frozen [--short] [--seed N] [--lease S]`: nothing stops the watch (I12).

Handlers run out of time inside logging, conditions, queues and drivers: no child may stand still.
Logs are not read, or cannot be written, while leases end: no effect may follow a lease's end.
"""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING

import psycopg

from proof.crash.fleet import Place, Shape
from proof.justice import chatter, judge, sinks
from proof.justice.harness import job
from proof.justice.judge import Innocent
from proof.justice.ledger import END, START
from proof.justice.sinks import Sink
from proof.justice.stage import prove
from proof.partitions.witness import Witness
from support.processes import wait_for

if TYPE_CHECKING:
    from collections.abc import Sequence

    from proof.crash.fleet import Worker
    from proof.justice.harness import Bed
    from proof.justice.stage import Stage
    from tenure._model.job import NewJob

# Handlers that wait inside a lock or a driver end with their child, which has to be started again.
_TIMEOUTS = dict.fromkeys(chatter.KINDS[:3], 1_560) | dict.fromkeys(chatter.KINDS[3:], 110)
_REPLACED_WITHIN = 3.0
_TIMEOUTS_SHORT = 36
_TIMEOUT = 0.25
_WORKERS = 3
# For the handler's own time, the stop that is tried first, and the grace of its neighbors.
_MARGIN = 3.0
_LONGEST_STANDSTILL = 30.0
_LEASES = 200
_STALLED_FOR = 300.0
_TERM_WITHIN = 5.0


def standstill(lease: float) -> float:
    """The longest time without progress that rule 17 allows, with a margin."""
    return min(_LONGEST_STANDSTILL, lease / 3) + _MARGIN


class Timeouts:
    """Workers with handlers that run out of time, next to innocents with one attempt."""

    def __init__(self, stage: Stage, kinds: Sequence[str], count: int, slots: int) -> None:
        self._stage = stage
        name = f"timeouts-{kinds[0]}-{slots}"
        self._sink = Sink(sinks.PIPE, stage.directory, name)
        self._bed = stage.bed(name, Shape(_WORKERS, 1, slots), places=[self._sink.place])
        self._innocents: list[Innocent] = []
        made = [job(kinds[n % len(kinds)], timeout=_TIMEOUT, max_attempts=1) for n in range(count)]
        stage.rng.shuffle(made)
        self._made = made
        self._loud: list[int] = []
        replaced = sum(kind not in chatter.KINDS[:3] for kind in kinds) / len(kinds)
        self._patience = 20 + count * (_TIMEOUT + replaced * _REPLACED_WITHIN)
        # Until when there was something to claim, so that a child without a start stood still.
        self._busy_until = 0.0
        self._longest: dict[int, float] = {}
        self._seen_at: dict[int, float] = {}

    def run(self) -> None:
        """Let them run out of time, and judge."""
        try:
            with self._bed:
                # Only now: children that end all the time would never be up together.
                self._loud = self._bed.enqueue(self._made)
                began = time.monotonic()
                while self._continues() and time.monotonic() - began < self._patience:
                    time.sleep(0.1)
                self._bed.wait_ended(standstill(self._stage.lease), supervise=False)
            self._judge()
        finally:
            self._bed.close()
            self._sink.close()

    def _continues(self) -> bool:
        bed = self._bed
        queued = bed.count("SELECT count(*) FROM tenure.job WHERE state = 'queued'")
        self._busy_until = time.time() if queued else self._busy_until
        bed.ledger.read()
        ended = {mark.job for mark in bed.ledger.marks if mark.kind == END}
        if queued and all(innocent.job in ended for innocent in self._innocents):
            [one] = bed.enqueue([job("nap", max_attempts=1, priority=9, seconds=0.3)])
            self._innocents.append(Innocent(one, 0.3))
        self._longest = self._gaps()
        stuck = max(self._longest.values(), default=0.0) > 2.5 * standstill(self._stage.lease)
        return not stuck and bool(judge.unfinished(self._loud, bed.fates()))

    def _gaps(self) -> dict[int, float]:
        """For how long each child, by its process id, was there, had jobs waiting and began none.
        The time in which its successor loads is not its own."""
        now = time.time()
        for worker in self._bed.fleet.workers:
            for child in worker.children():
                self._seen_at[child] = now
        starts: dict[int, list[float]] = {}
        for mark in self._bed.ledger.marks:
            if mark.kind == START and mark.pid in self._seen_at:
                starts.setdefault(mark.pid, []).append(mark.at)
        return {
            child: judge.longest_gap(at, at[0], min(self._seen_at[child], self._busy_until))
            for child, at in starts.items()
        }

    def _judge(self) -> None:
        bed, report, loud = self._bed, self._stage.report, self._loud
        rows = bed.rows("SELECT job_id, outcome FROM tenure.attempt WHERE outcome <> 'released'")
        outcomes = dict(rows)
        timed_out = sum(outcomes.get(j) == "timed_out" for j in loud)
        report.jobs += len(loud) + len(self._innocents)
        for _ in range(timed_out):
            report.fault("a handler ran out of time inside a lock")
        report.note("handlers that run out of time", len(loud))
        report.note("  ended as timed out", timed_out)
        report.note("  ended otherwise", sum(j in outcomes for j in loud) - timed_out)
        report.none("  that have not ended", judge.unfinished(loud, bed.fates()), timed=True)
        bound = standstill(self._stage.lease)
        longest = max(self._longest.values(), default=0.0)
        report.at_most("longest standstill of a child", longest, bound, " s")
        still = [
            f"child {pid}: {gap:.1f} s" for pid, gap in self._longest.items() if gap > 2 * bound
        ]
        report.none("children that stood still for good", still)
        self._stage.acquit(bed, self._innocents, None)
        report.none("workers that ended by themselves", bed.fleet.deserted)


def _fill(bed: Bed, logs: Sequence[Sink], lease: float) -> list[str]:
    """Have handlers log until nothing more fits anywhere; they run out of time meanwhile."""
    for _ in range(10):
        bed.enqueue([job("loud", timeout=lease / 6, max_attempts=1) for _ in logs])
        if wait_for(lambda: all(log.is_full for log in logs), lease / 6):
            break
    time.sleep(lease / 3)
    return [log.kind for log in logs if not log.is_full]


def _quiet(count: int, seconds: float, *kinds: str) -> list[NewJob]:
    kinds = kinds or ("nap", "doze", "toil", "hold")
    return [job(kinds[n % len(kinds)], max_attempts=20, seconds=seconds) for n in range(count)]


def _unread(stage: Stage, leases: int, stalled_for: float) -> None:
    """Workers whose logs are not read, or cannot be written, while leases run out."""
    report, lease = stage.report, stage.lease
    logs = [Sink(kind, stage.directory, f"unread-{n}") for n, kind in enumerate(sinks.KINDS)]
    bed = stage.bed("unread", Shape(len(logs), 1, 10), places=[log.place for log in logs])
    quiet_jobs: list[int] = []
    try:
        with Witness(bed.url) as witness, bed:
            stuck = list(bed.fleet.workers)
            quiet_jobs = bed.enqueue(_quiet(3 * len(logs), 3 * lease, "nap", "doze", "toil"))
            bed.wait_started(quiet_jobs, 15)
            for log in logs:
                log.stall()
            report.none("logs that did not fill", _fill(bed, logs, lease), timed=True)
            quiet_jobs += bed.enqueue(_quiet(len(logs), 3 * lease, "hold"))
            bed.wait_started(quiet_jobs, lease / 2)
            # Takes over what the others lose, and logs to a file.
            bed.fleet.start(Place())
            bed.note_parents()
            until = time.monotonic() + stalled_for
            ended = 0
            while ended < leases or time.monotonic() < until:
                ended += _lock_rows(bed, quiet_jobs, 1.5 * lease)
                if time.monotonic() > until + 6 * lease and ended < leases:
                    break
                if stage.short:
                    break
                live = len(judge.unfinished(quiet_jobs, bed.fates()))
                quiet_jobs += bed.enqueue(_quiet(4 * len(logs) - live, 3 * lease))
                time.sleep(1.5 * lease)
            _hear(stage, stuck, logs)
            bed.wait_ended((1 if stage.short else 5) * lease, supervise=False)
        report.jobs += len(quiet_jobs)
        report.at_least("leases that ended meanwhile", ended, leases)
        marks = bed.ledger.marks
        ends = {period: at.timestamp() for period, at in witness.ends.items()}
        report.none("effects after a lease's end", judge.after_end(marks, ends))
        report.none("jobs that ran twice side by side", judge.overlaps(marks))
    finally:
        bed.close()
        for log in logs:
            log.close()


def _lock_rows(bed: Bed, jobs: list[int], seconds: float) -> int:
    """Lock the rows of running jobs as a person would; return how many leases ended by it."""
    with psycopg.connect(bed.url) as connection:
        locked = connection.execute(
            "SELECT id, token FROM tenure.job WHERE state = 'running' AND id = ANY (%s) FOR UPDATE",
            [jobs],
        ).fetchall()
        time.sleep(seconds)
        [(over,)] = connection.execute(
            "SELECT count(*) FROM tenure.job WHERE lease_expires_at < clock_timestamp() "
            "AND id = ANY (%s)",
            [[job_id for job_id, _ in locked]],
        ).fetchall()
        return int(over)


def _hear(stage: Stage, stuck: Sequence[Worker], logs: Sequence[Sink]) -> None:
    """Tell the workers to end: each must hear it, whatever its log is like."""
    for worker in stuck:
        worker.dismiss(signal.SIGTERM)
    wait_for(lambda: all(worker.gone for worker in stuck), _TERM_WITHIN)
    deaf = [log.kind for worker, log in zip(stuck, logs, strict=True) if not worker.gone]
    stage.report.none("workers that did not hear SIGTERM", deaf)


def play(stage: Stage) -> None:
    """Time out, then stop reading."""
    if stage.short:
        stage.report.part("timeouts")
        Timeouts(stage, chatter.KINDS, _TIMEOUTS_SHORT, 1).run()
    else:
        # With one slot nothing else runs in the child whose deadline could have it killed.
        for kind in chatter.KINDS:
            for slots in (1, 4):
                stage.report.part(f"timeouts, {kind.replace('_', ' ')}, slots: {slots}")
                Timeouts(stage, (kind,), _TIMEOUTS[kind], slots).run()
    stage.report.part("unread logs")
    _unread(stage, *((4, 0.0) if stage.short else (_LEASES, _STALLED_FOR)))


def main(argv: list[str]) -> int:
    """Run it; 0 if no bar was missed."""
    return prove("frozen", __doc__, play, argv)
