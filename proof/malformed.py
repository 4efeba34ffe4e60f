"""`just prove malformed [--short]`: a producer inserts over 100 malformed rows before good jobs of
the same queue. The database refuses a row, or it ends as a dead letter. Lists and pages answer, and
every good job completes.
"""

from __future__ import annotations

import argparse
import tempfile
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from proof.report import Report
from proof.second_try import tried
from support.binaries import ROOT
from support.cluster import Cluster
from support.databases import Databases
from support.malformed_rows import UNREADABLE, kinds, run
from support.roles import database_with_roles

if TYPE_CHECKING:
    from support.malformed_rows import Outcome

ROWS = 100
# How many the database accepts today. If it accepts more, a check is missing.
ACCEPTED = 39
_WITHIN = 120.0
_FILE = ROOT / ".cache/proof/malformed.json"


def prove(*, short: bool) -> Report:
    """Run it on a private server."""
    report, by_kind = Report({}), kinds()
    rows = [each[0] for each in by_kind.values()] if short else [*chain(*by_kind.values())]
    report.part("malformed")
    with (
        tempfile.TemporaryDirectory(prefix="tenure-malformed-") as directory,
        Cluster(15) as cluster,
        database_with_roles(Databases(cluster)) as parties,
    ):
        found = run(parties, rows, Path(directory), _WITHIN)
    report.at_least("malformed rows", len(rows), len(by_kind) if short else ROWS)
    report.jobs = len(rows) + len(found.good)
    judge(found, report)
    return report


def judge(found: Outcome, report: Report) -> None:
    """Compare what was found with its bars."""
    accepted = len(found.accepted)
    report.at_least("malformed rows that the database accepts", accepted, 1)
    report.at_most("malformed rows that the database accepts at most", accepted, ACCEPTED)
    report.none("accepted rows that did not become dead letters", found.not_dead_letters.values())
    report.none("first reasons that the API does not show", {found.shown} - {UNREADABLE})
    report.at_least("good jobs", len(found.good), 1)
    report.none("good jobs that are not completed", found.not_completed)
    report.none("lists and pages that do not answer", found.unanswered)
    report.none("jobs that do not end", found.live, timed=True)


def main(argv: list[str]) -> int:
    """Run it; 0 if no bar was missed."""
    parser = argparse.ArgumentParser(prog="just prove malformed", description=__doc__)
    parser.add_argument("--short", action="store_true", help="one row of each kind")
    options = parser.parse_args(argv)
    return tried(lambda: prove(short=options.short), _FILE, short=options.short)
