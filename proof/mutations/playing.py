"""One run of the bed with a bug or without, in a process of its own, and which bars it missed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from proof import shutdown
from proof.second_try import FIRST
from support.binaries import ROOT
from support.processes import die_with_parent

if TYPE_CHECKING:
    from pathlib import Path

    from proof.mutations.bug import Run

PROOF = ROOT / ".cache/proof"
KEPT = PROOF / "bugs"
_LONGEST = 240.0
_PYTEST_FAILED = 1
_WRITTEN = (".json", ".md", f"{FIRST}.json", f"{FIRST}.md")


@dataclass
class Played:
    """The result of a run. `missed` has a sentence for each figure that missed its bar."""

    seconds: float
    missed: dict[str, str] = field(default_factory=dict)
    broken: str = ""
    # Of what was missed, that which no second run excuses.
    final: list[str] = field(default_factory=list)

    @property
    def excusable(self) -> bool:
        """Whether something was missed, and the machine may be to blame for all of it."""
        return bool(self.missed or self.broken) and not self.final

    def broke(self, run: Run, invariant: str) -> str | None:
        """The first sentence about this invariant."""
        if not run.report:
            return next(iter(self.missed.values()), None)
        wanted = run.figures.get(invariant, ())
        for what, sentence in self.missed.items():
            if what.startswith(f"{invariant}: ") or what in wanted:
                return sentence
        return None


def play(run: Run, bug: str | None) -> Played:
    """Do it, within a bound; what it logged and wrote stays in .cache/proof/bugs."""
    KEPT.mkdir(parents=True, exist_ok=True)
    name = bug or f"sound-{run.name}"
    began_at = time.monotonic()
    if not run.report:
        options = ["-x", "-q", "--no-header", "-p", "no:cacheprovider"]
        code, output = _run(["pytest", *run.words[1:], *options], bug, KEPT / f"{name}.log")
        played = Played(time.monotonic() - began_at)
        if code == _PYTEST_FAILED:
            played.missed["suite"] = _failed(output)
        elif code:
            played.broken = f"the suite ended with {code}"
        return played
    with _Aside(PROOF / run.report.format(seed=run.seed), KEPT / f"{name}.json") as report:
        words = ["proof", *run.words, "--seed", str(run.seed)]
        code, _ = _run(words, bug, KEPT / f"{name}.log")
        played = Played(time.monotonic() - began_at)
        if report.exists():
            whole = json.loads(report.read_text())
            played.missed, played.final = _missed(whole), whole["final"]
        else:
            played.broken = f"no report was written; it ended with {code}"
    return played


class _Aside:
    """Keeps the report of an earlier run of the subject where it was, and this one elsewhere."""

    def __init__(self, report: Path, kept: Path) -> None:
        self._report = report
        self._kept = kept
        self._before = {
            path: path.read_bytes() if path.exists() else None
            for path in (report.with_suffix(end) for end in _WRITTEN)
        }

    def __enter__(self) -> Path:
        self._report.unlink(missing_ok=True)
        return self._report

    def __exit__(self, *_: object) -> None:
        if self._report.exists():
            self._report.replace(self._kept)
        for path, before in self._before.items():
            if before is None:
                path.unlink(missing_ok=True)
            else:
                path.write_bytes(before)


def _run(words: list[str], bug: str | None, log: Path) -> tuple[int, str]:
    """The exit code and what was said; a run that takes too long is ended."""
    with log.open("wb") as file:
        process = subprocess.Popen(  # noqa: S603 - the bed's own subjects
            [sys.executable, "-m", *words, *(["--bug", bug] if bug else [])],
            cwd=ROOT,
            env=os.environ,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            preexec_fn=die_with_parent(signal.SIGTERM),  # noqa: PLW1509 - it takes no lock
        )
        try:
            process.wait(_LONGEST)
        except subprocess.TimeoutExpired:
            pass
        finally:
            shutdown.end(process)
    return process.returncode, log.read_text(errors="replace")


def _missed(whole: dict[str, Any]) -> dict[str, str]:
    found = {}
    for key, figure in whole["figures"].items():
        if figure["ok"] is False:
            what = key.split(": ", 1)[1]
            value, some = figure["value"], figure.get("some", [])
            text = f"{what}: {value}"
            if some:
                text = some[0] if what.startswith("I") else f"{text}, the first {some[0]}"
            found[what] = text
    return found


def _failed(output: str) -> str:
    """The test that failed, and why, in pytest's words."""
    lines = [line for line in output.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return lines[0].rpartition("::")[2] if lines else "it failed"
