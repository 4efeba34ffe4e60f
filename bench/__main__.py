"""`python -m bench [SUBJECT] [--short] [part …]`: measure, print, write JSON.

Without a subject: speed. With --short it ends with 1 if one of speed's bars is missed.
"""

from __future__ import annotations

import argparse
import json
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from bench import ticking
from bench.report import Report
from bench.server import server

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.server import Server

# Subjects, and the modules of their parts, each with a `run(server, report)`.
SUBJECTS = {
    "speed": (
        "bench.speed",
        ("draining", "enqueuing", "arrivals", "steady", "slots", "growth", "endurance"),
    ),
    "store": ("bench", ("costs", "renewing", "latency", "claiming", "flatness")),
    "worker": ("bench", ("starting", "delayed")),
    "schedules": ("bench", ("ticking",)),
    "server": ("bench.serving", ("waiting", "passing")),
    "lists": ("bench", ("lists",)),
}
SHORT = {"speed": ("short",)}
SETTINGS = {
    "schedules": ticking.SETTINGS,
    "server": {"shared_preload_libraries": "pg_stat_statements"},
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="just bench", description=__doc__)
    parser.add_argument("subject", choices=list(SUBJECTS), nargs="?", default="speed")
    parser.add_argument("parts", nargs="*", help="some of its parts; all, if none is named")
    parser.add_argument("--short", action="store_true", help="smaller tables, fewer rounds")
    arguments = parser.parse_args()
    subject = arguments.subject
    report = Report(short=arguments.short)
    package, parts = SUBJECTS[subject]
    if unknown := [part for part in arguments.parts if part not in parts]:
        parser.error(f"{subject} has no part {unknown[0]!r}; it has: {', '.join(parts)}")
    if arguments.short:
        parts = SHORT.get(subject, parts)
    file = Path(
        f".cache/bench/{subject}{'-short' if subject in SHORT and report.short else ''}.json"
    )
    if arguments.parts and file.exists():  # some parts again: the others stay as they were
        report.figures.update(json.loads(file.read_text())["figures"])
    try:
        with server(**SETTINGS.get(subject, {})) as running:
            for name in arguments.parts or parts:
                run: Callable[[Server, Report], None] = import_module(f"{package}.{name}").run
                run(running, report)
    finally:  # what was found until then is kept
        report.close(file)
    return int(bool(report.missed) and subject in SHORT and report.short)


if __name__ == "__main__":
    sys.exit(main())
