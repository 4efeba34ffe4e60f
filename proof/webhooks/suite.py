"""`just prove webhooks [--short]`: webhooks are delivered while workers are killed, PostgreSQL and
the receiver crash and restart, and the receiver refuses, stalls and loses answers.

Every job ends once, as completed. What the receiver accepted for one job has one `webhook-id` and a
good signature, so a receiver that honors it sees each effect once.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg.rows import dict_row

from proof.report import Report
from proof.second_try import tried
from proof.webhooks.receiver import SECRET
from support.binaries import ROOT
from support.cluster import Cluster, free_port
from support.databases import Databases
from support.store import install
from support.workers import Worker
from tenure import Tenure
from tenure.admin import By as Operator
from tenure.admin import connect
from tenure.config import DEFAULTS

if TYPE_CHECKING:
    from collections.abc import Iterator

# A lease of 3 s, as in the other proofs.
app = Tenure(defaults=DEFAULTS.scaled(0.1))
FULL, SHORT = 50_000, 1_500
# One fault for this many jobs: two of three are workers.
PER_FAULT = 500
SHORT_PER_FAULT = 150
_WORKERS = 2
_SLOTS = 50
_CHUNK = 1_000
_LOOK = 0.2
_STILL = 90.0
_NAME = "proof"
_BY = Operator("prover", source="proof")
_FILE = ROOT / ".cache/proof/webhooks.json"
_SETTINGS = {"max_connections": "200", "shared_buffers": "256MB"}
_BACKOFF = {"backoff_base": 0.1, "backoff_cap": 1.0}
_ENDED = """
SELECT (SELECT count(*) FROM tenure.job_archive WHERE task = 'tenure.http') AS completed,
    (SELECT count(*) FROM tenure.job_failed WHERE task = 'tenure.http') AS failed,
    (SELECT count(*) FROM tenure.job WHERE task = 'tenure.http') AS live
"""


@dataclass
class Bed:
    """One database, some workers, one receiver; each can be killed and comes back."""

    cluster: Cluster
    url: str
    directory: Path
    port: int
    rng: random.Random
    report: Report
    workers: list[Worker] = field(default_factory=list)
    receiver: subprocess.Popen[bytes] | None = None

    @property
    def book(self) -> Path:
        return self.directory / "book"

    def start(self) -> None:
        self.start_receiver()
        self.workers += [self._worker() for _ in range(_WORKERS)]

    def close(self) -> None:
        for worker in self.workers:
            worker.kill()
        self.kill_receiver()

    def _worker(self) -> Worker:
        environment = {
            "TENURE_KINDS_HTTP": json.dumps({"allow": [f"127.0.0.1:{self.port}"]}),
            "TENURE_SECRET_PROOF": SECRET,
        }
        return Worker(
            *("proof.webhooks.suite:app", self.url, self.directory, environment),
            kinds="http",
            concurrency=_SLOTS,
            grace=1,
        )

    def start_receiver(self) -> None:
        self.receiver = subprocess.Popen(  # noqa: S603 - our own program
            [
                *(sys.executable, "-m", "proof.webhooks.receiver"),
                *(str(self.port), str(self.book), str(self.rng.randrange(2**32))),
            ],
            cwd=ROOT,
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
        )

    def kill_receiver(self) -> None:
        if self.receiver is not None:
            self.receiver.kill()
            self.receiver.wait()

    def fault(self, number: int) -> None:
        """Kill something, and let it come back."""
        began = time.monotonic()
        if number % 6 == 2:
            self.cluster.kill()
            self.cluster.start()
            self.report.fault("PostgreSQL is killed and recovers", time.monotonic() - began)
        elif number % 6 == 5:
            self.kill_receiver()
            time.sleep(self.rng.uniform(0.1, 1.0))
            self.start_receiver()
            self.report.fault("the receiver is killed", time.monotonic() - began)
        else:
            place = self.rng.randrange(_WORKERS)
            self.workers[place].kill()
            self.workers[place] = self._worker()
            self.report.fault("a worker is killed")

    def ended(self) -> dict[str, Any]:
        with psycopg.connect(self.url, autocommit=True, row_factory=dict_row) as connection:
            found = connection.execute(_ENDED).fetchone()
        if found is None:
            raise AssertionError("a row of counts")
        return found

    def accepted(self) -> Iterator[dict[str, Any]]:
        """What the receiver accepted. A kill can cut off the last line of its life."""
        for line in self.book.read_text().splitlines():
            try:
                yield json.loads(line)
            except ValueError:
                self.report.note("lines that a kill cut off", 1)


def run(bed: Bed, *, jobs: int, per_fault: int) -> None:
    """Enqueue all, break things while they are delivered, and compare the books."""
    report = bed.report
    bed.start()
    program = Tenure(bed.url)
    hooks = [
        program.http.post(
            f"http://127.0.0.1:{bed.port}/hook", json={"number": number}, secret=_NAME
        )
        .using(max_attempts=1_000)
        .bind()
        for number in range(jobs)
    ]
    for first in range(0, jobs, _CHUNK):
        program.enqueue_many(hooks[first : first + _CHUNK])
    program.close()
    report.jobs = jobs
    faults, last, changed_at = 0, -1, time.monotonic()
    while (found := bed.ended())["live"]:
        done = found["completed"] + found["failed"]
        if done != last:
            last, changed_at = done, time.monotonic()
        if time.monotonic() - changed_at > _STILL:
            break
        if done >= (faults + 1) * per_fault:
            bed.fault(faults)
            faults += 1
        time.sleep(_LOOK)
    judge(bed, found, jobs=jobs, faults=faults, per_fault=per_fault)


def judge(bed: Bed, found: dict[str, Any], *, jobs: int, faults: int, per_fault: int) -> None:
    """Compare what the database says with what the receiver wrote down."""
    report = bed.report
    report.at_least("jobs", jobs, jobs)
    report.at_least("faults", faults, jobs // per_fault - 1)
    report.at_most("jobs that have not ended", found["live"], 0, timed=True)
    report.at_most("jobs that failed", found["failed"], 0)
    report.at_most("jobs that did not end once", abs(jobs - found["completed"]), 0)
    ids: dict[int, set[str]] = defaultdict(set)
    deliveries = unverified = 0
    for one in bed.accepted():
        deliveries += 1
        ids[one["number"]].add(one["id"])
        unverified += not one["verified"]
    report.at_most("deliveries whose signature is not good", unverified, 0)
    report.none("jobs that completed without a delivery", set(range(jobs)) - ids.keys())
    report.none("jobs with two ids", [n for n, seen in ids.items() if len(seen) != 1])
    effects = {one for seen in ids.values() for one in seen}
    report.at_most("effects more or less than jobs", abs(len(effects) - jobs), 0)
    report.note("deliveries accepted", deliveries)
    report.note("  of them repeated", deliveries - len(effects))


def prove(*, jobs: int, per_fault: int, seed: int) -> Report:
    """Run it on a private server."""
    report = Report({"jobs": jobs, "seed": seed})
    report.part("webhooks")
    with (
        tempfile.TemporaryDirectory(prefix="tenure-proof-") as directory,
        Cluster(15, settings=_SETTINGS) as cluster,
    ):
        databases = Databases(cluster)
        url = databases.create(databases.template("tenure", install))
        with connect(url) as admin:
            for name, value in _BACKOFF.items():
                admin.settings.set(name, value, _BY)
        rng = random.Random(seed)  # noqa: S311 - a proof's choices
        bed = Bed(cluster, url, Path(directory), free_port(), rng, report)
        try:
            run(bed, jobs=jobs, per_fault=per_fault)
        finally:
            bed.close()
    return report


def main(argv: list[str]) -> int:
    """Run it; 0 if no bar was missed."""
    parser = argparse.ArgumentParser(prog="just prove webhooks", description=__doc__)
    parser.add_argument("--short", action="store_true", help=f"{SHORT:,} webhooks")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(argv)
    jobs, per_fault = (SHORT, SHORT_PER_FAULT) if options.short else (FULL, PER_FAULT)
    return tried(
        lambda: prove(jobs=jobs, per_fault=per_fault, seed=options.seed),
        _FILE,
        short=options.short,
    )
