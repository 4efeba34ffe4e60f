"""`just prove totals`: keeps the reports of the runs in .cache/proof, and adds up all that are kept
into the tables of docs/evidence/proof.md.

They are kept in proof/results, which is committed, so that a reader can check where each
figure comes from. Runs with a seeded bug, short forms, and first runs that were tried again do not
count.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

from proof.poller import LOOKS
from proof.second_try import FIRST
from support.binaries import ROOT
from support.markdown import fill, table

_RUNS = ROOT / ".cache/proof"
_KEPT = ROOT / "proof/results"
PAGE = ROOT / "docs/evidence/proof.md"
# In the reports before 2026-11-17 this took a lock that no session waits for.
_NEVER_STRUCK = "a migration behind a long transaction"
# Names of figures in kept reports, and the words of the page.
_SHOWN = {
    r"jobs that \w+ asked for": "jobs that no client enqueued",
    r"workers that ended and \w+ had ended": "workers that ended without being stopped",
    r"workers that ended by themselves": "workers that ended on their own",
    r"innocents interrupted by nothing that was done": "innocents interrupted without a fault",
    r"nemeses that never struck": "fault injectors that never acted",
    r"pills (.*)": r"poison jobs \1",
    r"jobs more or fewer than keys asked for": "jobs more or fewer than keys",
    r"ledger rows that no handler says it wrote": "ledger rows that no handler reported",
}
_SIGNALS = {
    "SIGKILLs": "kill -9 of a worker or its child",
    "SIGSTOPs past the lease": "SIGSTOP past the lease",
}


def keep(directory: Path) -> None:
    """Keep the reports of the runs that count, each once; `name` is its file's."""
    _KEPT.mkdir(exist_ok=True)
    for path in directory.rglob("*.json"):
        whole = json.loads(path.read_text())
        left_out = {"bug", "bugs", "short"} & {k for k, v in whole.items() if v}
        if "figures" in whole and not left_out and not path.stem.endswith(FIRST):
            name = "-".join(path.relative_to(directory).with_suffix("").parts)
            at = whole["at"][:16].replace(":", "")
            kept = json.dumps({"name": name} | whole, indent=1)
            (_KEPT / f"{name}-{at}.json").write_text(kept + "\n")


def runs() -> list[dict[str, Any]]:
    """Every run that was kept, in the order of time."""
    found = [json.loads(path.read_text()) for path in _KEPT.glob("*.json")]
    return sorted((run for run in found if "figures" in run), key=lambda run: run["at"])


def _jobs(run: dict[str, Any]) -> int:
    """How many jobs were judged; some subjects tell it part by part."""
    ends = (": jobs that were to complete", ": innocents completed")
    parts = [figure["value"] for key, figure in run["figures"].items() if key.endswith(ends)]
    return int(run.get("jobs") or sum(parts))


def _faults(run: dict[str, Any]) -> Counter[str]:
    """How often each kind was injected; `crash` tells its signals as figures, part by part."""
    counted = Counter(run["faults"])
    del counted[_NEVER_STRUCK]
    for key, figure in run["figures"].items():
        signal = key.rpartition(": ")[2]
        if signal in _SIGNALS:
            counted[_SIGNALS[signal]] += figure["value"]
    return counted


def of_runs(found: list[dict[str, Any]]) -> str:
    """List each run with its time, its size and its result."""
    rows = [
        [
            run["name"],
            run["at"][:16].replace("T", " "),
            str(run.get("seed", "")),
            f"{run['seconds'] / 60:.1f}",
            f"{_jobs(run):,}",
            f"{_faults(run).total():,}",
            run.get("source", "–"),
            "failed: " + "; ".join(run["missed"]) if run["missed"] else "passed",
        ]
        for run in found
    ]
    head = ["run", "when, UTC", "seed", "minutes", "jobs", "faults", "source", "result"]
    return table(head, rows)


def of_faults(found: list[dict[str, Any]]) -> str:
    """How often each kind of fault was injected, in all."""
    counted: Counter[str] = Counter()
    for run in found:
        counted.update(_faults(run))
    rows = [[kind, f"{count:,}"] for kind, count in counted.most_common()]
    return table(["fault", "times"], [*rows, ["**total**", f"**{counted.total():,}**"]])


def of_zeros(found: list[dict[str, Any]]) -> str:
    """List each violation with its count, summed over all runs that checked for it."""
    sums: Counter[str] = Counter()
    looked: Counter[str] = Counter()
    for run in found:
        # Without a witness that looked, no lease was seen to be valid beside another.
        watched = any(key.endswith(LOOKS) for key in run["figures"])
        for key, figure in run["figures"].items():
            if isinstance(figure, dict) and figure.get("bar") == 0:
                what = key.rpartition(": ")[2] if ": I" not in key else key.split(": ", 1)[1]
                if what.startswith("I3: ") and not watched:
                    continue
                sums[what] += figure["value"]
                looked[what] += 1
    rows = [[_shown(what), f"{sums[what]:,}", f"{looked[what]:,}"] for what in sorted(sums)]
    return table(["violation", "found", "runs that checked"], rows)


def _shown(figure: str) -> str:
    """Return the name of a figure in the words of the page."""
    for pattern, shown in _SHOWN.items():
        if match := re.fullmatch(pattern, figure):
            return match.expand(shown)
    return figure


def in_all(found: list[dict[str, Any]]) -> str:
    """One sentence of it."""
    jobs = sum(map(_jobs, found))
    faults = sum(_faults(run).total() for run in found)
    hours = sum(run["seconds"] for run in found) / 3600
    return (
        f"{len(found)} runs, {hours:.1f} hours: **{jobs:,} jobs, {faults:,} injected faults**, "
        f"or {jobs / hours:,.0f} jobs and {faults / hours:,.0f} faults an hour."
    )


def written(text: str, found: list[dict[str, Any]]) -> str:
    """The page with the tables of these runs."""
    tables = {"all": in_all, "zeros": of_zeros, "faults": of_faults, "runs": of_runs}
    return fill(text, {name: make(found) for name, make in tables.items()})


def unexplained(text: str, found: list[dict[str, Any]]) -> list[str]:
    """The runs that missed a bar and have no row, with name and time, under "Runs that failed"."""
    section = text.partition("\n## Runs that failed")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ")]
    missed = [(run["name"], run["at"][:16].replace("T", " ")) for run in found if run["missed"]]
    return [
        f"{name}, {at}"
        for name, at in missed
        if not any(re.search(rf"\b{re.escape(name)}\b", row) and at in row for row in rows)
    ]


def main(argv: list[str]) -> int:
    """Write the tables; 1 if a run that missed a bar is not explained on the page."""
    parser = argparse.ArgumentParser(prog="just prove totals", description=__doc__)
    parser.add_argument("--runs", type=Path, default=_RUNS, help="where they wrote their reports")
    keep(parser.parse_args(argv).runs)
    found = runs()
    PAGE.write_text(written(PAGE.read_text(), found))
    print(in_all(found), of_zeros(found), sep="\n\n")
    missing = unexplained(PAGE.read_text(), found)
    for run in missing:
        print(f'\n{PAGE.name} has no row for {run} under "Runs that failed".')
    return 1 if missing else 0
