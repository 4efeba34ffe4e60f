"""`python -m bench store|worker|schedules [--short] [part …]`: measure, print, write JSON."""

from __future__ import annotations

import argparse
from pathlib import Path

from bench import claiming, costs, delayed, draining, flatness, latency, renewing, starting, ticking
from bench.report import Report
from bench.server import server

SUBJECTS = {
    "store": {
        "costs": costs.run,
        "renewing": renewing.run,
        "latency": latency.run,
        "claiming": claiming.run,
        "flatness": flatness.run,
    },
    "worker": {"starting": starting.run, "delayed": delayed.run, "draining": draining.run},
    "schedules": {"ticking": ticking.run},
}
SETTINGS = {"schedules": ticking.SETTINGS}


def main() -> None:
    parser = argparse.ArgumentParser(prog="just bench", description=__doc__)
    parser.add_argument("subject", choices=list(SUBJECTS))
    parser.add_argument("parts", nargs="*", help="some of its parts; all, if none is named")
    parser.add_argument("--short", action="store_true", help="smaller tables, fewer rounds")
    arguments = parser.parse_args()
    report = Report(short=arguments.short)
    with server(**SETTINGS.get(arguments.subject, {})) as running:
        parts = SUBJECTS[arguments.subject]
        for name in arguments.parts or parts:
            parts[name](running, report)
    report.close(Path(f".cache/bench/{arguments.subject}.json"))


if __name__ == "__main__":
    main()
