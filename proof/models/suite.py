"""`just prove models [check …] [--short]`: TLC on the models of the protocol, one report."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from proof.models import tlc
from proof.models.checks import CHECKS
from proof.report import Report
from support.binaries import ROOT

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from proof.models.checks import Check
    from proof.models.tlc import Verdict

_DIRECTORY = ROOT / ".cache/proof/models"


def decide(check: Check, directory: Path, *, short: bool) -> Verdict:
    """Run one check. The configuration and what TLC said stay in the directory."""
    config = directory / f"{check.name}.cfg"
    constants = check.constants(short=short)
    verdict = tlc.check(
        check.model.module, constants, check.invariants, config, properties=check.properties
    )
    config.with_suffix(".out").write_text(verdict.output)
    return verdict


def run(*, short: bool = False, names: Sequence[str] = ()) -> Report:
    """Run the checks, all or those named."""
    report = Report({"short": short})
    for check in CHECKS:
        if check.name in names or (not names and (check.in_short or not short)):
            tell(check, decide(check, _DIRECTORY, short=short), report)
    return report


def tell(check: Check, verdict: Verdict, report: Report) -> None:
    """Hold a verdict to what was expected of the check."""
    without = f" without {' and '.join(check.without)}" if check.without else ""
    report.part(f"{check.name}: {check.model.module}{without}")
    report.note("distinct states", verdict.distinct)
    report.note("time", round(verdict.seconds, 1), " s")
    report.note("processor time", round(verdict.processor, 1), " s")
    if check.broken:
        found = len(verdict.path) if verdict.violated == check.broken else 0
        report.at_least(f"steps of a counterexample to {check.broken}", found, 1)
        print(" → ".join(verdict.path), flush=True)
        return
    violated = [verdict.violated] if verdict.violated else []
    request = len(check.invariants) - 1 + len(check.properties)
    report.none(f"violated of {request} invariants", violated)
    report.none("behaviours that never happen", set(check.model.behaviours) - verdict.met)


def main(argv: list[str]) -> int:
    """Run it; 0 if no bar was missed."""
    names = [check.name for check in CHECKS]
    parser = argparse.ArgumentParser(prog="just prove models", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of: {', '.join(names)} (all)")
    parser.add_argument("--short", action="store_true", help="smaller bounds")
    options = parser.parse_args(argv)
    if unknown := set(options.names) - set(names):
        parser.error(f"no such check: {', '.join(sorted(unknown))}")
    report = run(short=options.short, names=options.names)
    report.close(_DIRECTORY.with_suffix(".json"))
    return 1 if report.missed else 0
