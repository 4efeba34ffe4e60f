"""`just prove schedules [part …] [--short] [--seed N]`: the parts and their sizes, one private
server, one report."""

from __future__ import annotations

import argparse
import os
import secrets
import shutil
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Protocol

from proof import mutations
from proof.report import Report
from proof.schedules import deploy, kills, outage, years
from proof.second_try import tried
from support.binaries import ROOT
from support.cluster import Cluster
from support.databases import Databases
from support.store import install

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_DIRECTORY = ROOT / ".cache/proof/schedules"
_SETTINGS = {"max_connections": "200", "shared_buffers": "256MB", "max_wal_size": "4GB"}
ALL = 1_000_000
ALL_IN_SHORT = 30_000


class Part(Protocol):
    """One part of the proof; answers with how many ticks it checked."""

    def __call__(
        self, url: str, report: Report, rng: Random, directory: Path, *, short: bool
    ) -> int: ...


PARTS: dict[str, Part] = {
    "outage": outage.run,
    "deploy": deploy.run,
    "kills": kills.run,
    "years": years.run,
}


@dataclass
class Proof:
    """One run of it."""

    short: bool
    seed: int
    parts: Sequence[str]
    checked: int = 0
    report: Report = field(init=False)

    def run(self) -> Report:
        """Each part on a database of its own; what was logged stays in .cache."""
        self.report = Report({"short": self.short, "seed": self.seed})
        print(f"seed {self.seed}{', short' if self.short else ''}", flush=True)
        shutil.rmtree(_DIRECTORY, ignore_errors=True)
        with Cluster(15, settings=_SETTINGS) as cluster:
            databases = Databases(cluster)
            template = databases.template("tenure", install)
            for name in self.parts or PARTS:
                self.report.part(name)
                url = databases.create(template)
                rng = Random(f"{self.seed} {name}")  # noqa: S311 - to be repeated
                part = PARTS[name]
                self.checked += part(url, self.report, rng, _DIRECTORY / name, short=self.short)
                databases.drop(url)
        if not self.parts:
            self.report.part("all")
            bar = ALL_IN_SHORT if self.short else ALL
            self.report.at_least("ticks checked in all parts", self.checked, bar)
        return self.report


def main(argv: list[str]) -> int:
    """Run it; 0 if no bar was missed."""
    parser = argparse.ArgumentParser(prog="just prove schedules", description=__doc__)
    parser.add_argument("parts", nargs="*", help=f"of: {', '.join(PARTS)} (all)")
    parser.add_argument("--short", action="store_true", help="a part of the counts")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1_000_000))
    parser.add_argument("--bug", help="apply this bug of proof/mutations to all schedulers")
    options = parser.parse_args(argv)
    if options.bug:
        os.environ["PROOF_BUG"] = options.bug
        mutations.apply(options.bug)
    return tried(
        lambda: Proof(options.short, options.seed, options.parts).run(),
        _DIRECTORY.with_suffix(".json"),
        short=options.short,
        bug=options.bug,
    )
