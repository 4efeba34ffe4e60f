"""`just prove peers [name …] [--short]`: both tests for each queue, several at a time; the page."""

from __future__ import annotations

import argparse
import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event
from typing import TYPE_CHECKING, Any

import psycopg

from proof.peers import killing, page, stopping
from proof.peers.field import QUICK, WAYS
from proof.peers.harness import Bed, NotTried, TooLate
from proof.report import Report
from support.binaries import ROOT
from support.cluster import Cluster
from support.daemons import Redis
from support.databases import Databases

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from proof.peers.field import Way

WATCH = 150.0
SHORT_WATCH = 60.0
TESTS = {"kill": killing.run, "stop": stopping.run}
_FAULTS = {"kill": "kill -9 of a worker", "stop": "worker stopped and resumed"}
_DIRECTORY = ROOT / ".cache/proof/peers"
_AT_A_TIME = 6
_TRIES = 3


class Suite:
    """The stores, and the tests on them."""

    def __init__(self, databases: Databases, watch: float) -> None:
        self._databases = databases
        self._watch = watch
        self.over = Event()

    def play(self, way: Way, test: str) -> dict[str, Any]:
        """One test of one queue; of a queue that cannot be tried, why."""
        why = ""
        for again in range(_TRIES):
            try:
                with self._store(way) as url:
                    directory = _DIRECTORY / f"{way.key}-{test}-{again}"
                    bed = Bed(way, url, directory, self.over)
                    found = {"version": bed.call("version")} | TESTS[test](bed, self._watch)
                    bed.keep(found)
                    return found
            except TooLate as error:
                why = str(error)
            except NotTried as error:
                return {"not_tried": str(error)}
        return {"not_tried": why}

    @contextmanager
    def _store(self, way: Way) -> Iterator[str]:
        if way.store == "redis":
            with Redis() as redis:
                yield redis.url
            return
        url = self._databases.create()
        try:
            yield url
        finally:
            self._databases.drop(url)


def run(*, short: bool = False, names: Sequence[str] = ()) -> Report:
    """Both tests of the queues that are named, or of all."""
    chosen = [way for way in WAYS if way.program in (names or (QUICK if short else way.program))]
    watch = SHORT_WATCH if short else WATCH
    report = Report({"short": short, "watch": watch, "rows": []})
    shutil.rmtree(_DIRECTORY, ignore_errors=True)
    with Cluster(15) as cluster, ThreadPoolExecutor(_AT_A_TIME) as pool:
        with psycopg.connect(cluster.url()) as connection:
            report.about["postgresql"] = connection.info.parameter_status("server_version")
        suite = Suite(Databases(cluster), watch)
        try:
            plays = {
                (way, test): pool.submit(suite.play, way, test) for way in chosen for test in TESTS
            }
            for way in chosen:
                found = {test: plays[way, test].result() for test in TESTS}
                _tell(report, way, found)
        finally:
            suite.over.set()
            pool.shutdown(cancel_futures=True)
    return report


def _tell(report: Report, way: Way, found: dict[str, dict[str, Any]]) -> None:
    """The figures of one queue. Bars are for Tenure alone: the others promise other things."""
    report.part(way.name)
    report.about["rows"].append({"name": way.name, "settings": way.settings} | found)
    for test, row in found.items():
        if "not_tried" in row:
            print(f"{test}: not tried: {row['not_tried']}", flush=True)
        else:
            report.fault(_FAULTS[test])
            text = [f"{what.replace('_', ' ')} {row[what]}" for what in page.SHOWN[test]]
            print(f"{test}: {', '.join(text)}", flush=True)
    if way.program == "tenure":
        kill, stop = found["kill"], found["stop"]
        report.at_least("jobs done after the kill", kill.get("done", 0), killing.JOBS)
        report.none("not refused", [stop] if stop.get("outcome") != "refused" else [])


def _beside(rows: list[dict[str, Any]], path: Path) -> list[dict[str, Any]]:
    """These rows, and of the queues that were not tried now those of the run before."""
    before = json.loads(path.read_text())["rows"] if path.exists() else []
    known = {row["name"]: row for row in (*before, *rows)}
    return [known[way.name] for way in WAYS if way.name in known]


def main(argv: list[str]) -> int:
    """Run it; 0 if no bar was missed. A full run writes the page; of some queues, their rows."""
    parser = argparse.ArgumentParser(prog="just prove peers", description=__doc__)
    names = list(dict.fromkeys(way.program for way in WAYS))
    parser.add_argument("names", nargs="*", help=f"of: {', '.join(names)} (all)")
    parser.add_argument("--short", action="store_true", help=f"only {' and '.join(QUICK)}")
    options = parser.parse_args(argv)
    if unknown := set(options.names) - set(names):
        parser.error(f"no such queue: {', '.join(sorted(unknown))}")
    report = run(short=options.short, names=options.names)
    path = _DIRECTORY.with_suffix(".json")
    if not options.short:
        report.about["rows"] = _beside(report.about["rows"], path)
    report.close(path)
    if not options.short:
        page.write(path)
    return 1 if report.missed else 0
