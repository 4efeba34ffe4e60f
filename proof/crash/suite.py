"""`just prove crash [part …] [--short] [--seed N] [--via http]`: the parts of the crash suite and
their sizes, one private database server, one report."""

from __future__ import annotations

import argparse
import secrets
import shutil
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from proof.crash import jobs, killing, stopping
from proof.crash.harness import Bed
from proof.crash.through import THROUGH
from proof.crash.way import DIRECT
from proof.report import Report
from proof.second_try import tried
from proof.via_http import serving
from proof.via_http.harness import HTTP, HttpBed
from support.binaries import ROOT
from support.cluster import Cluster
from support.databases import Databases
from support.store import install

if TYPE_CHECKING:
    from collections.abc import Sequence

    from proof.crash.way import Way

PARTS = ("kills", "kills-with-backlog", "stops", *THROUGH)
PARTS_VIA_HTTP = ("kills", "kills-with-backlog", "stops", "server")
# What fits into CI.
_SHORT_PARTS_VIA_HTTP = ("kills", "stops", "server")
_DIRECTORY = ROOT / ".cache/proof/crash"
_DIRECTORY_VIA_HTTP = ROOT / ".cache/proof/crash-via-http"
_SHAPES = {"stops": stopping.SHAPE, "server": serving.SHAPE}
_SETTINGS = {"max_connections": "400", "shared_buffers": "256MB"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """The counts of a whole run; kills and jobs are halved between the two conditions. `through`
    are the kills of each part that uses other drivers, and ten jobs are enqueued for each. Over
    HTTP, `servers` are the kills of the server, and `hangups` how often callers hang up."""

    kills: int
    jobs: int
    waiting: int
    stops: int
    inside: int
    through: int = 0
    servers: int = 0
    hangups: int = 0


FULL = Size(kills=1_000, jobs=16_000, waiting=100_000, stops=100, inside=20, through=55)
# A tenth, for every commit.
SHORT = Size(kills=30, jobs=500, waiting=10_000, stops=10, inside=2, through=5)
FULL_VIA_HTTP = Size(
    kills=120, jobs=2_000, waiting=20_000, stops=40, inside=0, servers=20, hangups=20
)
SHORT_VIA_HTTP = Size(kills=8, jobs=40, waiting=0, stops=3, inside=0, servers=1, hangups=2)


def run(
    *,
    short: bool = False,
    seed: int = 0,
    parts: Sequence[str] = (),
    bug: str | None = None,
    http: bool = False,
) -> Report:
    """Run the parts, each on a database of its own; what was logged stays in .cache. With `http`
    the workers reach a server alone."""
    directory = _DIRECTORY_VIA_HTTP if http else _DIRECTORY
    report = Report({"short": short, "seed": seed, "lease": jobs.LEASE, "bug": bug})
    print(f"seed {seed}, lease {jobs.LEASE:g} s{', short' if short else ''}", flush=True)
    shutil.rmtree(directory, ignore_errors=True)
    with Cluster(15, settings=_SETTINGS) as cluster:
        databases = Databases(cluster)
        template = databases.template("tenure", install)
        all_parts = (_SHORT_PARTS_VIA_HTTP if short else PARTS_VIA_HTTP) if http else PARTS
        for part in parts or all_parts:
            report.part(f"{part} via http" if http else part)
            url = databases.create(template)
            rng = Random(f"{seed} {part}")  # noqa: S311 - to be repeated
            kind = HttpBed if http else Bed
            bed = kind(url, directory / part, _SHAPES.get(part, killing.SHAPE), rng, bug)
            try:
                if isinstance(bed, HttpBed):
                    _play_via_http(part, bed, report, SHORT_VIA_HTTP if short else FULL_VIA_HTTP)
                else:
                    _play(part, bed, report, SHORT if short else FULL, DIRECT)
            finally:
                bed.close()
            databases.drop(url)
    return report


def _play_via_http(part: str, bed: HttpBed, report: Report, size: Size) -> None:
    if part == "server":
        plan = serving.Plan(kills=size.servers, hangups=size.hangups)
        serving.run(bed, report, plan, HTTP)
        return
    _play(part, bed, report, size, HTTP)


def _play(part: str, bed: Bed, report: Report, size: Size, way: Way) -> None:
    if part == "stops":
        plan = stopping.Plan(stops=size.stops, inside=size.inside)
        stopping.run(bed, report, plan, way)
        return
    if part in THROUGH:
        count = size.through
        killing.run(bed, report, killing.Plan(kills=count, jobs=10 * count, through=part), way)
        return
    waiting = size.waiting if part == "kills-with-backlog" else 0
    plan_of_kills = killing.Plan(kills=size.kills // 2, jobs=size.jobs // 2, waiting=waiting)
    killing.run(bed, report, plan_of_kills, way)


def main(argv: list[str]) -> int:
    """Run it; 0 if no bar was missed."""
    parser = argparse.ArgumentParser(prog="just prove crash", description=__doc__)
    parser.add_argument("parts", nargs="*", help=f"of: {', '.join((*PARTS, 'server'))} (all)")
    parser.add_argument("--short", action="store_true", help="a tenth of the counts")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1_000_000))
    parser.add_argument("--via", choices=["http"], help="workers that reach a server alone")
    parser.add_argument("--bug", help="a bug of proof/mutations for the children, to see it caught")
    options = parser.parse_args(argv)
    http = options.via == "http"
    return tried(
        lambda: run(
            short=options.short, seed=options.seed, parts=options.parts, bug=options.bug, http=http
        ),
        (_DIRECTORY_VIA_HTTP if http else _DIRECTORY).with_suffix(".json"),
        short=options.short,
        bug=options.bug,
    )
