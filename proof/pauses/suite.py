"""`just prove pauses [--short] [--seed N] [--leases N] [--via http]`: N leases paused past
their end."""

from __future__ import annotations

import argparse
import secrets
import shutil
from functools import partial
from random import Random

from proof.crash.harness import Bed
from proof.crash.jobs import LEASE
from proof.crash.program import WORK, Program
from proof.pauses import jobs, run
from proof.report import Report
from proof.second_try import tried
from proof.via_http.harness import HttpBed, settle
from proof.via_http.jobs import lingering
from proof.via_http.worker import PROGRAM
from support.binaries import ROOT
from support.cluster import Cluster
from support.databases import Databases
from support.store import install

FULL = 20_000
SHORT = 1_000
FULL_VIA_HTTP = 5_000
SHORT_VIA_HTTP = 200
_DIRECTORY = ROOT / ".cache/proof/pauses"
_DIRECTORY_VIA_HTTP = ROOT / ".cache/proof/pauses-via-http"
# A thread for each slot, and a request for each job: fewer slots.
_HTTP = run.Way(slots=100, make=lingering, open_at_once=0, settle=settle)
_SETTINGS = {"max_connections": "1000", "shared_buffers": "256MB"}


def prove(*, leases: int, seed: int, bug: str | None = None, http: bool = False) -> Report:
    """Run it on a private server; what was logged stays in .cache. With `http` the workers reach
    a server of ours alone."""
    directory = _DIRECTORY_VIA_HTTP if http else _DIRECTORY
    way = _HTTP if http else run.DIRECT
    report = Report({"seed": seed, "lease": LEASE, "leases": leases, "bug": bug})
    print(f"seed {seed}, lease {LEASE:g} s", flush=True)
    shutil.rmtree(directory, ignore_errors=True)
    with Cluster(15, settings=_SETTINGS) as cluster:
        databases = Databases(cluster)
        url = databases.create(databases.template("tenure", install))
        report.part("pauses via http" if http else "pauses")
        rng = Random(seed)  # noqa: S311 - to be repeated
        bed = (
            HttpBed(url, directory, way.shape, rng, bug)
            if http
            else Bed(url, directory, way.shape, rng, bug, target=jobs.TARGET)
        )
        program = partial(
            Program, jobs.TARGET, environment=bed.environment, work=PROGRAM if http else WORK
        )
        sleeper = program(directory / "sleeper.log", count=1, slots=way.slots)
        takers = program(directory / "takers.log", count=2, slots=100)
        try:
            run.run(bed, sleeper, takers, report, leases=leases, way=way)
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
    parser.add_argument("--via", choices=["http"], help="workers that reach a server alone")
    parser.add_argument("--bug", help="a bug of proof/mutations for all workers, to see it caught")
    options = parser.parse_args(argv)
    http = options.via == "http"
    full, short = (FULL_VIA_HTTP, SHORT_VIA_HTTP) if http else (FULL, SHORT)
    leases = options.leases or (short if options.short else full)
    return tried(
        lambda: prove(leases=leases, seed=options.seed, bug=options.bug, http=http),
        (_DIRECTORY_VIA_HTTP if http else _DIRECTORY).with_suffix(".json"),
        short=options.short,
        bug=options.bug,
    )
