"""A proof's run; and in the short form, which is for machines that are shared with others, a second
one if all that the first missed were bars of time, speed or count.

A bar of 0 that says what must not be is final (`Report.final`): that it was not seen a second time
is no evidence that it was not there the first time.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from proof.report import Report

FIRST = ".first"
_SUFFIXES = (".json", ".md", ".svg")


class Judged(Protocol):
    """What a run came to."""

    @property
    def excusable(self) -> bool:
        """Whether it missed something, and the machine may be to blame for all of it."""


T = TypeVar("T", bound=Judged)


def tried(
    run: Callable[[], Report], path: Path, *, short: bool = False, bug: str | None = None
) -> int:
    """Run it, mark its report as what it is and write it; 0 if no bar was missed. In the short form
    it is tried once more where that is allowed, unless a bug is to be seen."""

    def once() -> Report:
        report = run()
        report.about |= {"short": short, "bug": bug}
        report.close(path)
        return report

    return 1 if twice(once, path, again=short and bug is None).missed else 0


def twice(run: Callable[[], T], path: Path, *, again: bool = True) -> T:
    """What it came to, of a second run if the first is excusable; the first report is then kept
    beside the second, as NAME.first.json, and what the first left in NAME as NAME.first."""
    for suffix in _SUFFIXES:
        path.with_suffix(FIRST + suffix).unlink(missing_ok=True)
    shutil.rmtree(path.with_suffix(FIRST), ignore_errors=True)
    judged = run()
    if not again or not judged.excusable:
        return judged
    print("\nmissed once; if it was the machine, it is met now:", flush=True)
    for suffix in ("", *_SUFFIXES):
        if path.with_suffix(suffix).exists():
            path.with_suffix(suffix).replace(path.with_suffix(FIRST + suffix))
    return run()
