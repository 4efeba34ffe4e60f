"""`python -m bench store [--short] [part …]`: measure, print, write JSON."""

from __future__ import annotations

import argparse
from pathlib import Path

from bench import claiming, costs, flatness, latency, renewing
from bench.report import Report
from bench.server import server

PARTS = {
    "costs": costs.run,
    "renewing": renewing.run,
    "latency": latency.run,
    "claiming": claiming.run,
    "flatness": flatness.run,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="just bench", description=__doc__)
    parser.add_argument("subject", choices=["store"])
    parser.add_argument("parts", nargs="*", help=f"of: {', '.join(PARTS)} (all)")
    parser.add_argument("--short", action="store_true", help="smaller tables, fewer rounds")
    arguments = parser.parse_args()
    report = Report(short=arguments.short)
    with server() as running:
        for name in arguments.parts or PARTS:
            PARTS[name](running, report)
    report.close(Path(".cache/bench/store.json"))


if __name__ == "__main__":
    main()
