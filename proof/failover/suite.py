"""`just prove failover [part …] [--short] [--seed N] [--failovers N]`: its parts, their sizes."""

from __future__ import annotations

import argparse
import secrets
import shutil
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING

from proof.crash import jobs
from proof.failover import asynchronous, cancelled, synchronous
from proof.report import Report
from proof.second_try import tried
from support.binaries import ROOT

if TYPE_CHECKING:
    from collections.abc import Sequence

PARTS = ("synchronous", "cancelled", "asynchronous", "split")
_DIRECTORY = ROOT / ".cache/proof/failover"


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """The counts of a whole run: failovers of each kind, and cancelled waits. `parts` are those
    that are run if none is named."""

    parts: Sequence[str] = PARTS
    short: bool = False
    synchronous: int
    cancelled: int
    asynchronous: int


FULL = Size(synchronous=100, cancelled=400, asynchronous=10)
SHORT = Size(synchronous=3, cancelled=20, asynchronous=1, parts=PARTS[:3], short=True)


def run(size: Size, *, seed: int = 0, parts: Sequence[str] = (), bug: str | None = None) -> Report:
    """Run the parts, each on servers of its own; what was logged stays in .cache."""
    report = Report({"short": size.short, "seed": seed, "lease": jobs.LEASE, "bug": bug})
    print(f"seed {seed}, lease {jobs.LEASE:g} s", flush=True)
    shutil.rmtree(_DIRECTORY, ignore_errors=True)
    for part in parts or size.parts:
        report.part(part)
        rng = Random(f"{seed} {part}")  # noqa: S311 - to be repeated
        directory = _DIRECTORY / part
        match part:
            case "synchronous":
                synchronous.run(directory, report, rng, size.synchronous, bug)
            case "cancelled":
                cancelled.run(directory, report, rng, size.cancelled, bug)
            case "asynchronous":
                asynchronous.run(directory, report, rng, size.asynchronous, bug, split=False)
            case "split":
                asynchronous.run(directory, report, rng, 1, bug, split=True)
            case _:
                raise SystemExit(f"no part {part}; there are: {', '.join(PARTS)}")
    return report


def main(argv: list[str]) -> int:
    """Run it; 0 if no bar was missed."""
    parser = argparse.ArgumentParser(prog="just prove failover", description=__doc__)
    parser.add_argument("parts", nargs="*", help=f"of: {', '.join(PARTS)} (all)")
    parser.add_argument("--short", action="store_true", help="a few of each")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1_000_000))
    parser.add_argument("--failovers", type=int, help="of the part synchronous, at least 3")
    parser.add_argument(
        "--bug", help="a bug of proof/mutations for workers and clients, to see it caught"
    )
    options = parser.parse_args(argv)
    size = SHORT if options.short else FULL
    if options.failovers:
        size = replace(size, synchronous=max(3, options.failovers))
    return tried(
        lambda: run(size, seed=options.seed, parts=options.parts, bug=options.bug),
        _DIRECTORY.with_suffix(".json"),
        short=options.short,
        bug=options.bug,
    )
