"""`just prove operations [--short]`: 200,000 dead letters are retried at 2,000 a second by a worker
that is killed twice in the middle, each exactly once, its progress true at any time; then the
jobs are moved, and that is aborted.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from proof.installation import installed
from proof.report import Report
from proof.second_try import tried
from support.binaries import ROOT
from tenure import Tenure
from tenure.admin import By as Operator
from tenure.admin import Changes, Filter
from tenure.types import OperationState

if TYPE_CHECKING:
    from collections.abc import Callable

    from proof.installation import Installation
    from tenure.types import OperationRow

app = Tenure()
FULL = 200_000
SHORT = 20_000
RATE = 2_000
KILL_AT = (0.3, 0.6)
ABORT_WITHIN = 2.0
_TOKEN = 7
_LOOK = 0.25
_SETTLED = 2.0
_COME_BACK = 15.0
_STRETCH = 5.0
_BY = Operator("prover", source="proof", reason="the cause is fixed")
_TARGET = "proof.operations:app"
_FILE = ROOT / ".cache/proof/operations.json"
_LETTERS = """
INSERT INTO tenure.job_failed (id, token, run_at, created_at, ended_at, items, priority, attempt,
    max_attempts, losses, max_losses, queue, task, done_reason, error_signature, args)
SELECT n, %(token)s, now(), now(), now(), 0, 5, 3, 3, 0, 3, 'letters', 'send', 'attempts',
    'ConnectionError: refused', '{"to": 1}'
FROM generate_series(1, %(count)s) AS n
"""
# One snapshot: the operation's own counts, its items, and the state of the jobs.
_TRUTH = """
SELECT o.done, o.total, o.state, clock_timestamp() AS at,
    (SELECT count(i.outcome) FROM tenure.operation_item AS i WHERE i.operation_id = o.id)
        AS reported,
    (SELECT count(*) FROM tenure.job AS j WHERE j.token = %(token)s + 1) AS alive,
    (SELECT count(*) FROM tenure.job_failed) AS dead
FROM tenure.operation AS o
WHERE o.id = %(id)s
"""
_TWICE = "SELECT id FROM tenure.job WHERE token <> %(token)s + 1 OR state <> 'queued'"
_OUTCOMES = """
SELECT job_id FROM tenure.operation_item
WHERE operation_id = %(id)s AND outcome IS DISTINCT FROM 'retried'
"""


@app.task(name="send", queue="idle")
def send(to: int) -> None:
    """Never runs: the worker serves another queue than that of the letters."""


@dataclass
class Run:
    """A retry and a move, and what was seen of them."""

    installation: Installation
    report: Report
    untrue: list[dict[str, Any]] = field(default_factory=list)
    seen: list[tuple[float, int]] = field(default_factory=list)

    def retry(self, count: int) -> None:
        """Retry all dead letters, with two kills on the way."""
        self.installation.rows(_LETTERS, token=_TOKEN, count=count)
        began = time.monotonic()
        started = self.installation.admin.operations.start(
            "retry", Filter(queue="letters"), _BY, rate=RATE
        )
        self.report.note("seconds to freeze the members", time.monotonic() - began, " s")
        self.report.at_least("members", started.total, count)
        kills = [int(count * share) for share in KILL_AT]
        returned = [self._killed(started, at) for at in kills]
        self._until(started, lambda truth: truth["state"] == OperationState.DONE)
        self._judge(started, returned)

    def _killed(self, started: OperationRow, done: int) -> float:
        """Kill the worker once this many are done; return the seconds until a new one continues."""
        self._until(started, lambda truth: truth["done"] >= done)
        self.installation.worker.kill()
        self.report.fault("the worker that does an operation is killed")
        left, began = self._look(started)["done"], time.monotonic()
        self.installation.replace_worker()
        self._until(started, lambda truth: truth["done"] > left)
        return time.monotonic() - began

    def _until(self, started: OperationRow, there: Callable[[dict[str, Any]], bool]) -> None:
        within = _COME_BACK + started.total / RATE * 2
        self.installation.wait_until(lambda: there(self._look(started)), within, look=_LOOK)

    def _look(self, started: OperationRow) -> dict[str, Any]:
        """The progress now, which must be what can be counted."""
        [truth] = self.installation.rows(_TRUTH, id=started.id, token=_TOKEN)
        whole = truth["alive"] + truth["dead"] == truth["total"]
        if not whole or not truth["done"] == truth["reported"] == truth["alive"]:
            self.untrue.append(truth)
        self.seen.append((truth["at"].timestamp(), truth["done"]))
        return truth

    def _judge(self, started: OperationRow, returned: list[float]) -> None:
        report, ended = self.report, self.installation.admin.operations.get(started.id)
        if ended is None or ended.started_at is None or ended.ended_at is None:
            raise AssertionError("it has ended")
        seconds = (ended.ended_at - ended.started_at).total_seconds()
        report.jobs = started.total
        report.note("seconds from the first chunk to the last", seconds, " s")
        report.note("jobs per second over all, deaths included", round(started.total / seconds))
        # Who comes late may make up for a second; and a chunk is done at once.
        most = RATE * (_STRETCH + 1) + RATE / 2
        report.at_most("jobs done in the fastest 5 s", self._fastest(), most)
        for number, wait in enumerate(returned, 1):
            report.at_most(
                f"seconds until a new worker continues, death {number}", wait, 15.0, " s"
            )
        report.at_least("looks at the progress", len(self.seen), 10)
        report.none("looks at which it was not what can be counted", self.untrue)
        report.none("items not retried", self.installation.rows(_OUTCOMES, id=started.id))
        report.none(
            "jobs retried twice, or not alive", self.installation.rows(_TWICE, token=_TOKEN)
        )
        alive = self.installation.rows("SELECT count(*) AS n FROM tenure.job")[0]["n"]
        report.at_most("jobs more or fewer than dead letters", abs(alive - started.total), 0)
        dead = self.installation.rows("SELECT count(*) AS n FROM tenure.job_failed")[0]["n"]
        report.at_most("dead letters left", dead, 0)
        audit = self.installation.rows("SELECT count(*) AS n FROM tenure.audit")[0]["n"]
        report.at_most("rows in the audit beside that of the operation", audit - 1, 0)

    def _fastest(self) -> int:
        """The most that was done in any stretch of five seconds."""
        return max(
            then - done
            for at, done in self.seen
            for later, then in self.seen
            if at <= later <= at + _STRETCH
        )

    def abort(self) -> None:
        """Move all jobs, and abort that in the middle."""
        changes = Changes(queue="elsewhere")
        answer = Filter(queue="letters")
        started = self.installation.admin.operations.start(
            "move", answer, _BY, rate=RATE, changes=changes
        )
        while self.installation.operation(started).done < RATE:
            time.sleep(_LOOK)
        began = time.monotonic()
        aborted = self.installation.admin.operations.abort(started.id, _BY)
        self.report.at_most(
            "seconds until an abort has answered", time.monotonic() - began, ABORT_WITHIN, " s"
        )
        time.sleep(_SETTLED)
        after = self.installation.operation(started)
        moved = self.installation.rows(
            "SELECT count(*) AS n FROM tenure.job WHERE queue = 'elsewhere'"
        )[0]["n"]
        self.report.note("jobs moved before it", moved)
        self.report.at_most("jobs moved after it", abs(moved - aborted.done), 0)
        self.report.at_most("items done after it", after.done - aborted.done, 0)


def prove(*, count: int) -> Report:
    """Run it on a private server."""
    report = Report({"jobs": count, "rate": RATE, "kills": len(KILL_AT)})
    with installed(_TARGET, "idle") as installation:
        run = Run(installation, report)
        report.part("retry")
        run.retry(count)
        report.part("abort")
        run.abort()
    return report


def main(argv: list[str]) -> int:
    """Run it; 0 if no bar was missed."""
    parser = argparse.ArgumentParser(prog="just prove operations", description=__doc__)
    parser.add_argument("--short", action="store_true", help=f"{SHORT:,} dead letters")
    options = parser.parse_args(argv)
    count = SHORT if options.short else FULL
    return tried(lambda: prove(count=count), _FILE, short=options.short)
