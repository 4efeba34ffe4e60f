"""`just prove bugs [NAME …] [--short]`: each seeded bug in its run, which must miss a bar of the
invariant that the catalogue names; and the same by the same seed without the bug, which must miss
nothing.

The tables of docs/evidence/seeded-bugs.md are made of what the last run of each bug found.
"""

from __future__ import annotations

import argparse
import json
from functools import partial
from typing import TYPE_CHECKING, Any

from proof.mutations.catalogue import BUGS, named
from proof.mutations.playing import KEPT, PROOF, play
from proof.report import Report
from proof.second_try import twice
from support.binaries import ROOT
from support.markdown import fill, table

if TYPE_CHECKING:
    from proof.mutations.bug import Bug, Run
    from proof.mutations.playing import Played

_PAGE = ROOT / "docs/evidence/seeded-bugs.md"
_ROWS = ROOT / "proof/results/bugs.json"
_MOST = 160
_SEEDS = 4
_APART = 10


def prove(chosen: list[Bug], *, seeded: bool, sound: bool, short: bool) -> Report:
    """Run them one after the other."""
    report = Report({"bugs": len(chosen), "short": short})
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
        row = rows[bug.name] = _seek(bug)
        found = row["found"]
        caught += found is not None
        report.at_least(f"{bug.name} breaks {bug.invariant}", int(found is not None), 1)
        print(f"    {found}, {row['seconds']} s, by {row['seeds']}", flush=True)
        _keep(report, rows)
    report.at_least("bugs caught", caught, len(chosen))


def _prove_sound(report: Report, chosen: list[Bug], rows: dict[str, Any]) -> None:
    report.part("without one")
    for run in dict.fromkeys(_control(bug, rows) for bug in chosen):
        # Only bars that the machine alone can miss are tried again, as in every short form.
        played = twice(partial(_play_sound, run), KEPT / f"sound-{run.name}.json")
        missed = [*played.missed, *filter(None, [played.broken])]
        report.none(f"bars missed by {_title(run)}", missed)
        rows[_title(run)] = {"missed": missed, "seconds": round(played.seconds)}
        _keep(report, rows)


def _control(bug: Bug, rows: dict[str, Any]) -> Run:
    """The run by which the bug was caught: by its last seed."""
    seeds = rows.get(bug.name, {}).get("seeds")
    return bug.run.by(seeds[-1]) if seeds else bug.run


def _title(run: Run) -> str:
    return f"{run.name} {run.seed}" if run.report else run.name


def _seek(bug: Bug) -> dict[str, Any]:
    """The sentence by which it was caught, by which seeds it was tried, the last of which caught
    it, and how long that took."""
    seconds = 0.0
    seeds = []
    found = None
    for run in _tries(bug.run):
        played = play(run, bug.name)
        seconds += played.seconds
        seeds += [run.seed] if run.report else []
        found = played.broke(run, bug.invariant)
        if found is not None:
            break
        missed = played.broken or [*played.missed]
        print(f"    {_title(run)}, not by {bug.invariant}: {missed}", flush=True)
    return {"found": found, "seconds": round(seconds), "seeds": seeds}


def _tries(run: Run) -> list[Run]:
    """What a seed leads to is up to the processes' luck too; so more than one is tried."""
    return (
        [run, *(run.by(run.seed + _APART * n) for n in range(1, _SEEDS))] if run.report else [run]
    )


def _play_sound(run: Run) -> Played:
    played = play(run, None)
    if played.missed or played.broken:
        print(f"    {_title(run)} missed: {played.broken or played.missed}", flush=True)
    return played


def _keep(report: Report, rows: dict[str, Any]) -> None:
    """For the page; a short form leaves that as it is."""
    if report.about["short"]:
        return
    _ROWS.parent.mkdir(exist_ok=True)
    _ROWS.write_text(json.dumps(rows, indent=1) + "\n")


def tables(rows: dict[str, Any]) -> dict[str, str]:
    """How many there are; the table of the bugs and the table of the runs."""
    bugs = []
    for bug in BUGS:
        row = rows.get(bug.name, {"found": "not run yet", "seconds": "", "seeds": []})
        found = (row["found"] or "**not caught**")[:_MOST]
        cells = [f"`{bug.name}`", bug.breaks, bug.run.name, bug.invariant, found]
        bugs.append([*cells, ", ".join(map(str, row["seeds"])), str(row["seconds"])])
    done = []
    for run in dict.fromkeys(_control(bug, rows) for bug in BUGS):
        row = rows.get(_title(run), {"missed": ["not run yet"], "seconds": ""})
        missed = "; ".join(row["missed"]) or "passed"
        done.append([_title(run), f"`{run}`", missed, str(row["seconds"])])
    head = ["bug", "rule it breaks", "run", "invariant", "first finding", "seeds tried"]
    return {
        "count": _count(rows),
        "bugs": table([*head, "seconds"], bugs, words=6),
        "runs": table(["run", "how", "without a bug", "seconds"], done, words=3),
    }


def _count(rows: dict[str, Any]) -> str:
    caught = [bug for bug in BUGS if rows.get(bug.name, {}).get("found")]
    by_runs = sum(bool(bug.run.report) for bug in caught)
    new = sum(bug.name not in rows for bug in BUGS)
    missed = len(BUGS) - len(caught) - new
    return (
        f"Of {len(BUGS)} bugs, {by_runs} were caught by fault injection runs and "
        f"{len(caught) - by_runs} by a test suite. {missed} were not caught, {new} not run yet."
    )


def write() -> None:
    """Put the tables into the page."""
    rows = json.loads(_ROWS.read_text()) if _ROWS.exists() else {}
    _PAGE.write_text(fill(_PAGE.read_text(), tables(rows)))


def main(argv: list[str]) -> int:
    """Run it; 0 if every bug was caught and no run missed a bar without one."""
    parser = argparse.ArgumentParser(prog="just prove bugs", description=__doc__)
    parser.add_argument("names", nargs="*", help="of bugs (all)")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--short", action="store_true", help="the first bug of each run, no more")
    which.add_argument("--no-sound", action="store_true", help="leave out the runs without a bug")
    which.add_argument("--only-sound", action="store_true", help="leave out those with one")
    options = parser.parse_args(argv)
    chosen = [named(name) for name in options.names] or list(BUGS)
    if options.short:
        chosen = list({bug.run: bug for bug in reversed(chosen)}.values())
    sound = not options.no_sound and not options.short
    report = prove(chosen, seeded=not options.only_sound, sound=sound, short=options.short)
    report.close(PROOF / "bugs.json")
    if not options.short:
        write()
    return 1 if report.missed else 0
