"""A proof's run, and in the short form a second one if a bar was missed: both are told."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from proof.report import Report


def tried(run: Callable[[], Report], path: Path, *, again: bool) -> int:
    """Run it and write its report; 0 if no bar was missed. `again` is for machines that are shared
    with others: what was missed because of them is met the second time."""
    report = run()
    report.about.setdefault("short", again)
    report.close(path)
    if again and report.missed:
        print("\nmissed once; if it was the machine, it is met now:", flush=True)
        report = run()
        report.about.setdefault("short", again)
        report.close(path)
    return 1 if report.missed else 0
