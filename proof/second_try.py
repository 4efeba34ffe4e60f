"""A proof's run; and in the short form, which is for machines that are shared with others, a second
one if all that the first missed were bars of time, speed or count.

A bar of 0 that says what must not be is final (`Report.final`): that it was not seen a second time
is not evidence that it was absent the first time.
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
    """The result of a run."""

    @property
    def excusable(self) -> bool:
        """Whether it missed something, and the machine may be to blame for all of it."""


T = TypeVar("T", bound=Judged)


def tried(
    run: Callable[[], Report],
    path: Path,
    *,
    short: bool = False,
    bug: str | None = None,
    zeros: bool = False,
) -> int:
    """Run it, mark its report as what it is and write it; 0 if no bar was missed. In the short form
    it is tried once more where that is allowed, unless a bug is to be seen.

    With `zeros`, run it once, and fail only for what must be zero. For CI, whose machine is shared:
    bars of time and count belong to one that is not."""

    def once() -> Report:
        report = run()
        report.about |= {"short": short, "bug": bug}
        report.close(path)
        return report

    if zeros:
        return 1 if once().final else 0
    return 1 if twice(once, path, again=short and bug is None).missed else 0


def twice(run: Callable[[], T], path: Path, *, again: bool = True) -> T:
    """Return the result, of a second run if the first is excusable; the first report is then kept
    next to the second, as NAME.first.json, and the files of the first in NAME.first."""
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
