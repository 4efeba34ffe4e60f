"""`just prove crash [part …] [--short] [--seed N]`: the parts of the crash suite and their sizes,
one private server, one report."""

from __future__ import annotations

import argparse
import secrets
import shutil
import signal
import sys
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from proof.crash import jobs, killing, stopping
from proof.crash.bed import Bed
from proof.crash.through import THROUGH
from proof.report import Report
from proof.trying import tried
from support.binaries import ROOT
from support.cluster import Cluster
from support.databases import Databases
from support.store import install

if TYPE_CHECKING:
    from collections.abc import Sequence

PARTS = ("kills", "kills-with-backlog", "stops", *THROUGH)
_DIRECTORY = ROOT / ".cache/proof/crash"
_SETTINGS = {"max_connections": "400", "shared_buffers": "256MB"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """The counts of a whole run; kills and jobs are halved between the two conditions. `through`
    are the kills of each part that uses other drivers, and ten jobs are enqueued for each."""

    kills: int
    jobs: int
    waiting: int
    stops: int
    inside: int
    through: int


FULL = Size(kills=1_000, jobs=16_000, waiting=100_000, stops=100, inside=20, through=55)
# A tenth, for every commit.
SHORT = Size(kills=30, jobs=500, waiting=10_000, stops=10, inside=2, through=5)


def run(
    *, short: bool = False, seed: int = 0, parts: Sequence[str] = (), bug: str | None = None
) -> Report:
    """Run the parts, each on a database of its own; what was logged stays in .cache."""
    size = SHORT if short else FULL
    report = Report({"short": short, "seed": seed, "lease": jobs.LEASE, "bug": bug})
    print(f"seed {seed}, lease {jobs.LEASE:g} s{', short' if short else ''}", flush=True)
    shutil.rmtree(_DIRECTORY, ignore_errors=True)
    with Cluster(15, settings=_SETTINGS) as cluster:
        databases = Databases(cluster)
        template = databases.template("tenure", install)
        for part in parts or PARTS:
            report.part(part)
            shape = stopping.SHAPE if part == "stops" else killing.SHAPE
            url = databases.create(template)
            rng = Random(f"{seed} {part}")  # noqa: S311 - to be repeated
            bed = Bed(url, _DIRECTORY / part, shape, rng, bug)
            try:
                _play(part, bed, report, size)
            finally:
                bed.close()
            databases.drop(url)
    return report


def _play(part: str, bed: Bed, report: Report, size: Size) -> None:
    if part == "stops":
        plan = stopping.Plan(stops=size.stops, inside=size.inside)
        stopping.run(bed, report, plan)
        return
    if part in THROUGH:
        count = size.through
        killing.run(bed, report, killing.Plan(kills=count, jobs=10 * count, through=part))
        return
    waiting = size.waiting if part == "kills-with-backlog" else 0
    plan_of_kills = killing.Plan(kills=size.kills // 2, jobs=size.jobs // 2, waiting=waiting)
    killing.run(bed, report, plan_of_kills)


def main(argv: list[str]) -> int:
    """Run it; 0 if no bar was missed."""
    parser = argparse.ArgumentParser(prog="just prove crash", description=__doc__)
    parser.add_argument("parts", nargs="*", help=f"of: {', '.join(PARTS)} (all)")
    parser.add_argument("--short", action="store_true", help="a tenth of the counts")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1_000_000))
    parser.add_argument("--bug", help="a bug of proof/bugs for the children, to see it caught")
    said = parser.parse_args(argv)
    # Leave by the way on which everything is ended.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    return tried(
        lambda: run(short=said.short, seed=said.seed, parts=said.parts, bug=said.bug),
        _DIRECTORY.with_suffix(".json"),
        again=said.short and not said.bug,
    )
