"""What every subject of this package starts with: options, one private server, one report."""

from __future__ import annotations

import argparse
import os
import secrets
import shutil
import time
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from proof.justice import judge
from proof.justice.harness import Bed
from proof.report import Report
from proof.second_try import tried
from support.binaries import ROOT
from support.cluster import Cluster
from support.databases import Databases
from support.store import install

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from proof.crash.fleet import Place, Shape
    from proof.justice.judge import Innocent, Strike

_SETTINGS = {"max_connections": "400", "shared_buffers": "128MB"}
CORES = os.cpu_count() or 1


@dataclass
class Stage:
    """One run of a subject."""

    cluster: Cluster
    databases: Databases
    template: str
    report: Report
    rng: Random
    directory: Path
    lease: float
    short: bool

    def bed(
        self,
        name: str,
        shape: Shape,
        *,
        places: Sequence[Place] | None = None,
        work: str | None = None,
        beside: Mapping[str, str] | None = None,
    ) -> Bed:
        """Make a database with workers for one part."""
        url = self.databases.create(self.template)
        options: dict[str, object] = {"beside": beside}
        if places is not None:
            options["places"] = places
        if work is not None:
            options["work"] = work
        return Bed(url, self.directory / name, shape, self.lease, **options)  # type: ignore[arg-type]

    def acquit(
        self, bed: Bed, innocents: Sequence[Innocent], strikes: Sequence[Strike] | None
    ) -> None:
        """Judge innocents (I11): none failed, none charged, none side by side. With strikes
        given: none interrupted by anything else, and none late."""
        fates, marks = bed.fates(), bed.ledger.marks
        report = self.report
        report.note("innocents", len(innocents))
        report.none("innocents that failed", judge.failed(innocents, fates))
        ids = [innocent.job for innocent in innocents]
        report.none("innocents that have not ended", judge.unfinished(ids, fates), timed=True)
        report.none("innocents charged an attempt", judge.charged(innocents, marks))
        report.none("completed without an end", judge.unproven(innocents, fates, marks))
        report.none("jobs that ran twice side by side", judge.overlaps(marks))
        if strikes is None:
            return
        waits = judge.waits(innocents, marks, strikes, bed.claims())
        odd = [wait for wait in waits if wait.kind == judge.UNEXPLAINED]
        report.none("innocents interrupted by nothing that was done", odd, timed=True)
        report.note("innocents interrupted", len(waits))
        seconds = sorted(wait.seconds for wait in waits)
        if seconds:
            report.note("until they ran again, p50", seconds[len(seconds) // 2], " s")
            report.note("until they ran again, longest", seconds[-1], " s")
        late = judge.late(waits, self.lease, CORES)
        report.none("innocents that waited longer than the bound", late, timed=True)


def prove(
    name: str,
    description: str | None,
    play: Callable[[Stage], None],
    argv: list[str],
    *,
    settings: Mapping[str, str] | None = None,
) -> int:
    """Read the options, run the subject, and return 0 if no bar was missed."""
    parser = argparse.ArgumentParser(prog=f"just prove {name}", description=description)
    parser.add_argument("--short", action="store_true", help="the form for CI")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1_000_000))
    parser.add_argument("--lease", type=float, default=3.0, help="seconds (default: 3)")
    parser.add_argument(
        "--zeros", action="store_true", help="fail only for what must be zero; report the rest"
    )
    parser.add_argument("--bug", help="a bug of proof/mutations for all workers, to see it caught")
    options = parser.parse_args(argv)
    # Parents and children of workers read it.
    os.environ["PROOF_BUG"] = options.bug or ""
    directory = ROOT / f".cache/proof/{name}"

    def run() -> Report:
        report = Report({"seed": options.seed, "lease": options.lease})
        print(f"seed {options.seed}, lease {options.lease:g} s", flush=True)
        shutil.rmtree(directory, ignore_errors=True)
        began = time.monotonic()
        with Cluster(15, settings={**_SETTINGS, **(settings or {})}, in_memory=True) as cluster:
            databases = Databases(cluster)
            template = databases.template("tenure", install)
            rng = Random(options.seed)  # noqa: S311 - to be repeated
            play(
                Stage(
                    cluster,
                    databases,
                    template,
                    report,
                    rng,
                    directory,
                    options.lease,
                    options.short,
                )
            )
        report.part("run")
        report.note("seconds", time.monotonic() - began, " s")
        return report

    path = directory.with_suffix(".json")
    return tried(run, path, short=options.short, zeros=options.zeros)
