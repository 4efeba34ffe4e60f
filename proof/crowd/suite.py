"""`just prove crowd [part …] [--short]`: many at once.

- `running`: 5,000 running jobs at 50 workers for five minutes, and no lease is lost;
- `idle`: 200 idle workers and one job at a time;
- `expiring`: 10,000 leases that end at the same instant.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from proof.crowd import expiring, idle, running
from proof.report import Report
from proof.second_try import tried
from support.binaries import ROOT
from support.cluster import Cluster
from support.store import install
from support.workers import Bed

if TYPE_CHECKING:
    from collections.abc import Iterable

_PARTS = {"running": running.run, "idle": idle.run, "expiring": expiring.run}
_SETTINGS = {"max_connections": "4000", "shared_buffers": "512MB"}


def main(argv: list[str]) -> int:
    """Run them, or those that are named; 0 if no bar was missed."""
    parser = argparse.ArgumentParser(
        prog="just prove crowd",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("parts", nargs="*", help=f"of: {', '.join(_PARTS)} (all)")
    parser.add_argument("--short", action="store_true", help="smaller crowds")
    options = parser.parse_args(argv)
    path = ROOT / ".cache/proof/crowd.json"
    return tried(
        lambda: run(options.parts or _PARTS, short=options.short), path, short=options.short
    )


def run(parts: Iterable[str], *, short: bool) -> Report:
    """Each part on a server of its own."""
    report = Report({"short": short})
    for part in parts:
        report.part(part)
        with Cluster(15, _SETTINGS) as cluster, tempfile.TemporaryDirectory() as directory:
            install(cluster.url())
            bed = Bed(cluster.url(), Path(directory))
            try:
                _PARTS[part](bed, report, short=short)
            finally:
                bed.close()
    return report
