"""`just prove bugs [NAME …]`: each seeded bug in its run, which must miss a bar of the invariant
that the catalogue names; and each of these runs without a bug, which must miss nothing.

The tables of docs/seeded-bugs.md are made of what the last run of each bug found.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from typing import TYPE_CHECKING, Any

from proof.bugs.catalogue import BUGS, named
from proof.bugs.playing import PROOF, play
from proof.report import Report
from support.binaries import ROOT

if TYPE_CHECKING:
    from proof.bugs.bug import Bug, Run
    from proof.bugs.playing import Played

_PAGE = ROOT / "docs/seeded-bugs.md"
_ROWS = ROOT / "proof/results/bugs.json"
_MOST = 160
_SEEDS = 4
_APART = 10


def prove(chosen: list[Bug], *, seeded: bool, sound: bool) -> Report:
    """Run them one after the other."""
    report = Report({"bugs": len(chosen)})
    rows: dict[str, Any] = json.loads(_ROWS.read_text()) if _ROWS.exists() else {}
    if seeded:
        _prove_caught(report, chosen, rows)
    if sound:
        _prove_sound(report, chosen, rows)
    return report


def _prove_caught(report: Report, chosen: list[Bug], rows: dict[str, Any]) -> None:
    report.part("with a bug")
    caught = 0
    for bug in chosen:
        found, seconds = _seek(bug)
        caught += found is not None
        report.at_least(f"{bug.name} breaks {bug.invariant}", int(found is not None), 1)
        print(f"    {found}, {seconds:.0f} s", flush=True)
        rows[bug.name] = {"found": found, "seconds": round(seconds)}
        _keep(rows)
    report.at_least("bugs caught", caught, len(chosen))


def _prove_sound(report: Report, chosen: list[Bug], rows: dict[str, Any]) -> None:
    report.part("without one")
    for run in dict.fromkeys(bug.run for bug in chosen):
        played = _try_sound(run)
        missed = [*played.missed, *filter(None, [played.broken])]
        report.none(f"bars missed by {run.name}", missed)
        rows[run.name] = {"missed": missed, "seconds": round(played.seconds)}
        _keep(rows)


def _seek(bug: Bug) -> tuple[str | None, float]:
    """The sentence by which it was caught, and how long the runs took."""
    seconds = 0.0
    for run in _tries(bug.run):
        played = play(run, bug.name)
        seconds += played.seconds
        found = played.broke(run, bug.invariant)
        if found is not None:
            return (found if run is bug.run else f"by seed {run.seed}: {found}"), seconds
        missed = played.broken or [*played.missed]
        print(f"    {run.name} {run.seed}, not by {bug.invariant}: {missed}", flush=True)
    return None, seconds


def _tries(run: Run) -> list[Run]:
    """What a seed leads to is up to the processes' luck too; so more than one is tried."""
    return (
        [run, *(run.by(run.seed + _APART * n) for n in range(1, _SEEDS))] if run.report else [run]
    )


def _try_sound(run: Run) -> Played:
    """A bar that was missed once, on a machine shared with others, must be met the next time."""
    played = play(run, None)
    if played.missed or played.broken:
        print(f"    {run.name} missed: {played.broken or played.missed}", flush=True)
        played = play(run, None)
    return played


def _keep(rows: dict[str, Any]) -> None:
    _ROWS.parent.mkdir(exist_ok=True)
    _ROWS.write_text(json.dumps(rows, indent=1) + "\n")


def tables(rows: dict[str, Any]) -> dict[str, str]:
    """The table of the bugs and the table of the runs."""
    bugs = [["bug", "rule it breaks", "run", "broken", "what was found first", "seconds"]]
    for bug in BUGS:
        row = rows.get(bug.name, {"found": "not run yet", "seconds": ""})
        found = (row["found"] or "**not caught**").replace("|", "\\|")[:_MOST]
        cells = [f"`{bug.name}`", bug.breaks, bug.run.name, bug.invariant, found]
        bugs.append([*cells, str(row["seconds"])])
    done = [["run", "how", "without a bug", "seconds"]]
    for run in dict.fromkeys(bug.run for bug in BUGS):
        row = rows.get(run.name, {"missed": ["not run yet"], "seconds": ""})
        missed = "; ".join(row["missed"]) or "no bar missed"
        done.append([run.name, f"`{run}`", missed, str(row["seconds"])])
    return {"bugs": _table(bugs), "runs": _table(done)}


def _table(rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]]) + "\n"


def write() -> None:
    """Put the tables into the page, between their marks."""
    rows = json.loads(_ROWS.read_text()) if _ROWS.exists() else {}
    text = _PAGE.read_text()
    for name, table in tables(rows).items():
        before, rest = text.split(f"<!-- {name} -->\n", 1)
        _, after = rest.split(f"<!-- /{name} -->", 1)
        text = f"{before}<!-- {name} -->\n{table}<!-- /{name} -->{after}"
    _PAGE.write_text(text)


def main(argv: list[str]) -> int:
    """Run it; 0 if every bug was caught and no run missed a bar without one."""
    parser = argparse.ArgumentParser(prog="just prove bugs", description=__doc__)
    parser.add_argument("names", nargs="*", help="of bugs (all)")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--no-sound", action="store_true", help="leave out the runs without a bug")
    which.add_argument("--only-sound", action="store_true", help="leave out those with one")
    said = parser.parse_args(argv)
    # Leave by the way on which everything is ended.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    chosen = [named(name) for name in said.names] or list(BUGS)
    report = prove(chosen, seeded=not said.only_sound, sound=not said.no_sound)
    report.close(PROOF / "bugs.json")
    write()
    return 1 if report.missed else 0
