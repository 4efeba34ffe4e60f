"""`just prove erase [--short]`: one person's jobs are erased among 1,000,000, while other jobs are
enqueued and run, by a worker that is killed twice in the middle. Nothing of the person is left in
any column of any table, and no other row that was there before has changed.
"""

from __future__ import annotations

import argparse
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from proof.installation import installed
from proof.report import Report
from proof.second_try import tried
from support.binaries import ROOT
from support.canaries import columns_with
from tenure import Tenure
from tenure.admin import By as Operator
from tenure.admin import JobRequest, connect
from tenure.types import OperationState

if TYPE_CHECKING:
    from collections.abc import Callable

    from proof.installation import Installation
    from tenure.types import OperationRow

app = Tenure()
FULL = 1_000_000
SHORT = 20_000
# The number of jobs among which three are the person's.
SHARE = 100
RATE = 1_000
SHORT_RATE = 100
KILL_AT = (0.3, 0.6)
CANARY = "zebra7041"
_TAG = f"customer:{CANARY}"
_BY = Operator("prover", source="proof", reason="ticket 12")
_TARGET = "proof.erase:app"
_FILE = ROOT / ".cache/proof/erase.json"
_LOOK = 0.1
_COME_BACK = 30.0
_LOAD_PAUSE = 0.05
# A third each is archived, failed and queued; three of SHARE are the person's, one in each third.
_WORDS = """
SELECT n, n %% 3 AS home, CASE WHEN n %% %(share)s < 3 THEN '{CANARY}' ELSE 'other' || n END AS who
FROM generate_series(1, %(count)s) AS n
""".replace("{CANARY}", CANARY)
_META = """jsonb_build_object('tags', jsonb_build_array('customer:' || w.who))"""
_FILL = f"""
WITH w AS MATERIALIZED ({_WORDS}), filed AS (
    INSERT INTO tenure.job_archive (id, token, run_at, created_at, ended_at, filed_on, items,
        priority, attempt, max_attempts, losses, state, queue, task, key, done_reason, args, result,
        meta)
    SELECT w.n, 1, now(), now(), now(), (now() AT TIME ZONE 'UTC')::date, 1, 5, 1, 3, 0,
        'completed', 'idle', 'send', 'key-' || w.who || w.n, 'completed',
        jsonb_build_object('to', w.who), to_jsonb(w.who), {_META}
    FROM w WHERE w.home = 0
), dead AS (
    INSERT INTO tenure.job_failed (id, token, run_at, created_at, ended_at, items, priority,
        attempt, max_attempts, losses, max_losses, queue, task, done_reason, error_message,
        error_signature, args, meta)
    SELECT w.n, 1, now(), now(), now(), 0, 5, 3, 3, 0, 3, 'idle', 'send', 'attempts',
        'no ' || w.who, 'Error: ' || w.who, jsonb_build_object('to', w.who), {_META}
    FROM w WHERE w.home = 1
), queued AS (
    INSERT INTO tenure.job (id, run_at, created_at, priority, max_attempts, max_losses, queue, task,
        key, args, meta)
    SELECT w.n, now() + interval '1 day', now(), 5, 3, 3, 'idle', 'send', 'key-' || w.who || w.n,
        jsonb_build_object('to', w.who), {_META}
    FROM w WHERE w.home = 2
), tried AS (
    INSERT INTO tenure.attempt (job_id, token, due_at, started_at, ended_at, claimed_by, filed_on,
        renewals, attempt, late, outcome, queue, task, error_message, error_trace, log)
    SELECT w.n, 1, now(), now(), now(), gen_random_uuid(), (now() AT TIME ZONE 'UTC')::date, 0, 1,
        false, 'failed', 'idle', 'send', 'no ' || w.who, 'at ' || w.who, 'log ' || w.who
    FROM w WHERE w.home < 2
), item AS (
    INSERT INTO tenure.job_item (job_id, key, data) SELECT w.n, w.who, to_jsonb(w.who)
    FROM w WHERE w.home = 0
)
INSERT INTO tenure.job_key (task, key, job_id)
SELECT 'send', 'key-' || w.who || w.n, w.n FROM w WHERE w.home IN (0, 2)
"""
# A fingerprint of the rows that are not the person's; what the load makes has later ids.
_TABLES = {
    "job": "id",
    "job_archive": "id",
    "job_failed": "id",
    "attempt": "job_id",
    "job_item": "job_id",
    "job_key": "job_id",
}
_PRINT = """
SELECT count(*) AS rows, coalesce(sum(hashtextextended(t::text, 0)::numeric), 0) AS print
FROM tenure.{table} AS t WHERE t.{id} <= %(count)s AND t.{id} %% %(share)s >= 3
"""


@app.task(name="send", queue="busy")
def send(to: str) -> None:
    """Do nothing: it is the load."""


@dataclass
class Run:
    """The erasure of one person, and the load beside it."""

    installation: Installation
    report: Report
    stop: threading.Event = field(default_factory=threading.Event)
    sent: int = 0

    def prints(self, count: int) -> dict[str, dict[str, Any]]:
        return {
            table: self.installation.rows(
                _PRINT.format(table=table, id=name), count=count, share=SHARE
            )[0]
            for table, name in _TABLES.items()
        }

    def load(self) -> None:
        """Enqueue jobs of others until the end; the worker runs them."""
        requests = [JobRequest(task="send", args={"to": "other"}, queue="busy")] * 10
        with connect(self.installation.url) as admin:
            while not self.stop.wait(_LOAD_PAUSE):
                admin.jobs.enqueue_many(requests, _BY)
                self.sent += len(requests)

    def erase(self, count: int, rate: int) -> None:
        """Erase the person, with two kills on the way, beside the load."""
        self.installation.rows(_FILL, share=SHARE, count=count)
        self.installation.rows("SELECT setval('tenure.job_id_seq', %(count)s)", count=count)
        self.installation.rows("ANALYZE")
        before, report = self.prints(count), self.report
        loading = threading.Thread(target=self.load)
        loading.start()
        try:
            began = time.monotonic()
            started = self.installation.admin.erase(f"tag:{_TAG}", _BY, rate=rate)
            report.note("seconds to find the jobs", time.monotonic() - began, " s")
            total = started.operation.total
            report.at_least("jobs of the person", total, count * 3 // SHARE)
            for share in KILL_AT:
                self._killed(started.operation, int(total * share))
            self._until(started.operation, lambda row: row.state is OperationState.DONE)
        finally:
            self.stop.set()
            loading.join()
        report.jobs = count + self.sent
        ended = self.installation.operation(started.operation)
        report.at_most("jobs that are not erased", total - ended.outcomes.get("erased", 0), 0)  # type: ignore[call-overload]  # a name is equal to its enum
        left = sorted(".".join(one) for one in columns_with(self.installation.url, CANARY))
        report.none("columns with the person's name", left)
        after = self.prints(count)
        report.none("tables with another changed row", [t for t in before if before[t] != after[t]])
        report.at_least("jobs enqueued meanwhile", self.sent, 10)
        seconds = (ended.ended_at - ended.started_at).total_seconds()  # type: ignore[operator]  # it has ended
        report.note("seconds from the first chunk to the last", seconds, " s")

    def _killed(self, started: OperationRow, done: int) -> None:
        self._until(started, lambda row: row.done >= done)
        self.installation.worker.kill()
        self.report.fault("the worker that erases is killed")
        left = self.installation.operation(started).done
        self.installation.replace_worker()
        self._until(started, lambda row: row.done > left or row.state.is_ended)

    def _until(self, started: OperationRow, there: Callable[[OperationRow], bool]) -> None:
        within = _COME_BACK + started.total / started.rate * 3
        self.installation.wait_until(
            lambda: there(self.installation.operation(started)), within, look=_LOOK
        )


def prove(*, count: int, rate: int) -> Report:
    """Run it on a private server."""
    report = Report({"jobs": count, "rate": rate, "kills": len(KILL_AT)})
    with installed(_TARGET, "busy") as installation:
        Run(installation, report).erase(count, rate)
    return report


def main(argv: list[str]) -> int:
    """Run it; 0 if no bar was missed."""
    parser = argparse.ArgumentParser(prog="just prove erase", description=__doc__)
    parser.add_argument("--short", action="store_true", help=f"among {SHORT:,} jobs")
    options = parser.parse_args(argv)
    count, rate = (SHORT, SHORT_RATE) if options.short else (FULL, RATE)
    return tried(lambda: prove(count=count, rate=rate), _FILE, short=options.short)
