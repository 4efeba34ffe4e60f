"""`just prove batteries [--short]`: the suites of tests/crash, each as long as the proof wants it.

They are the same tests that run at every commit; only their counts differ. In the short form,
which runs on machines that are shared, what failed is tried once more, and both are told.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from pathlib import Path

from proof import shutdown
from proof.crowd import suite as crowd
from support.binaries import ROOT

# How many tests of the short form run at a time. Those that compare an instant with the end of a
# lease need the machine; two thirds of the others' time is waiting.
_MEASURED = {"blocked_loop", "cut_off", "frozen", "stuck_log", "timeouts"}
_AT_A_TIME, _MEASURED_AT_A_TIME = 4, 2
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


def _short(suites: list[str]) -> int:
    """Run several tests at a time, those that measure fewer; 0 if all passed."""
    measured = [suite for suite in suites if Path(suite).stem.removeprefix("test_") in _MEASURED]
    others = [suite for suite in suites if suite not in measured]
    missed = 0
    for some, at_a_time in ((measured, _MEASURED_AT_A_TIME), (others, _AT_A_TIME)):
        if some:
            missed = _pytest("short", f"--numprocesses={at_a_time}", *some) or missed
    return missed


def main(argv: list[str]) -> int:
    """Run them, or those that are named; 0 if all passed."""
    parser = argparse.ArgumentParser(prog="just prove batteries", description=__doc__)
    parser.add_argument("parts", nargs="*", help="cut_off, draining, poison, … (all, and crowd)")
    parser.add_argument("--short", action="store_true", help="with the counts of every commit")
    options = parser.parse_args(argv)
    form = "short" if options.short else "full"
    suites = [f"tests/crash/test_{part}.py" for part in options.parts if part != "crowd"]
    suites = suites if options.parts else _all()
    missed = 0
    if suites and options.short:
        missed = _short(suites)
        if missed:
            print("\nfailed once; if it was the machine, it passes now:", flush=True)
            missed = _pytest(form, "--last-failed", *suites)
    elif suites:
        missed = _pytest(form, *suites)
    if "crowd" in options.parts or not options.parts:
        missed = crowd.main(["--short"] if options.short else []) or missed
    return missed


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
