"""`just prove batteries [--short]`: the suites of tests/crash, each as long as the proof wants it.

They are the same tests that run at every commit; only their counts differ. In the short form,
which runs on machines that are shared, what failed is tried once more, and both are told.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys

from proof import shutdown
from proof.crowd import suite as crowd
from support.binaries import ROOT

# Subjects of their own, with a suite that is a short form of them.
_OTHERS = {"test_crashes.py", "test_crowd.py", "test_failover.py"}


def _all() -> list[str]:
    files = (ROOT / "tests" / "crash").glob("test_*.py")
    return sorted(str(file) for file in files if file.name not in _OTHERS)


def _pytest(form: str, *arguments: str) -> int:
    command = [sys.executable, "-m", "pytest", *arguments]
    # At a SIGTERM pytest would be gone at once, and its fixtures would leave what they hold.
    return shutdown.run(
        command, by=signal.SIGINT, environment=os.environ | {"TENURE_BATTERIES": form}
    )


def main(argv: list[str]) -> int:
    """Run them, or those that are named; 0 if all passed."""
    parser = argparse.ArgumentParser(prog="just prove batteries", description=__doc__)
    parser.add_argument("parts", nargs="*", help="cut_off, draining, poison, … (all, and crowd)")
    parser.add_argument("--short", action="store_true", help="with the counts of every commit")
    said = parser.parse_args(argv)
    form = "short" if said.short else "full"
    suites = [f"tests/crash/test_{part}.py" for part in said.parts if part != "crowd"]
    missed = 0
    if suites or not said.parts:
        # Most of their time is waiting; alone, where that counts.
        beside = ["--numprocesses=2"] if said.short else []
        missed = _pytest(form, *beside, *(suites or _all()))
        if missed and said.short:
            print("\nfailed once; if it was the machine, it passes now:", flush=True)
            missed = _pytest(form, "--last-failed", *(suites or _all()))
    if "crowd" in said.parts or not said.parts:
        missed = crowd.main(["--short"] if said.short else []) or missed
    return missed


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
