"""`just prove pauses [--short] [--seed N] [--leases N]`: so many leases paused past their end."""

from __future__ import annotations

import argparse
import secrets
import shutil
import signal
import sys
from random import Random

from proof.crash.bed import Bed
from proof.crash.jobs import LEASE
from proof.crash.program import Program
from proof.pauses import jobs, run
from proof.report import Report
from proof.trying import tried
from support.binaries import ROOT
from support.cluster import Cluster
from support.databases import Databases
from support.store import install

FULL = 20_000
SHORT = 1_000
_DIRECTORY = ROOT / ".cache/proof/pauses"
_SETTINGS = {"max_connections": "1000", "shared_buffers": "256MB"}


def prove(*, leases: int, seed: int, bug: str | None = None) -> Report:
    """Run it on a private server; what was logged stays in .cache."""
    report = Report({"seed": seed, "lease": LEASE, "leases": leases, "bug": bug})
    print(f"seed {seed}, lease {LEASE:g} s", flush=True)
    shutil.rmtree(_DIRECTORY, ignore_errors=True)
    with Cluster(15, settings=_SETTINGS) as cluster:
        databases = Databases(cluster)
        url = databases.create(databases.template("tenure", install))
        report.part("pauses")
        rng = Random(seed)  # noqa: S311 - to be repeated
        bed = Bed(url, _DIRECTORY, run.SHAPE, rng, bug, target=jobs.TARGET)
        sleeper = Program(
            jobs.TARGET, _DIRECTORY / "sleeper.log", bed.environment, count=1, slots=run.SLOTS
        )
        takers = Program(
            jobs.TARGET, _DIRECTORY / "takers.log", bed.environment, count=2, slots=100
        )
        try:
            run.run(bed, sleeper, takers, report, leases)
        finally:
            sleeper.end()
            takers.end()
            bed.close()
    return report


def main(argv: list[str]) -> int:
    """Run it; 0 if no bar was missed."""
    parser = argparse.ArgumentParser(prog="just prove pauses", description=__doc__)
    parser.add_argument("--short", action="store_true", help=f"{SHORT:,} leases")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1_000_000))
    parser.add_argument("--leases", type=int, help=f"how many, instead of {FULL:,} or {SHORT:,}")
    parser.add_argument("--bug", help="a bug of proof/bugs for all workers, to see it caught")
    said = parser.parse_args(argv)
    # Leave by the way on which everything is ended.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    leases = said.leases or (SHORT if said.short else FULL)
    return tried(
        lambda: prove(leases=leases, seed=said.seed, bug=said.bug),
        _DIRECTORY.with_suffix(".json"),
        again=said.short and not said.bug,
    )
