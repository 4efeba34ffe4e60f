"""`just prove poison [--short] [--seed N]`: pills among many jobs, with the default caps and no
kill from outside. Each pill fails as `poison` after three deaths of its own process; every innocent
completes in its first attempt."""

from __future__ import annotations

import argparse
import secrets
import shutil
import time
from collections import Counter
from random import Random
from typing import TYPE_CHECKING

from proof.checker.endings import ending_kind
from proof.crash.fleet import Place, Shape
from proof.crash.harness import Bed
from proof.crash.jobs import LEASE
from proof.poison import jobs
from proof.report import Report
from proof.second_try import tried
from support.binaries import ROOT
from support.cluster import Cluster
from support.databases import Databases
from support.limits import MemoryLimit
from support.store import install

if TYPE_CHECKING:
    from tenure._model.job import NewJob

SHAPE = Shape(workers=2, processes=1, slots=10)
FULL = (50, 50_000)
SHORT = (5, 5_000)
LOSSES = 3
# In a process with others, before it is a suspect, or in one that just served another.
_SHARED = 2
_LIMIT = 1536 * 2**20
_DIRECTORY = ROOT / ".cache/proof/poison"
_SETTINGS = {"max_connections": "400", "shared_buffers": "256MB"}
_LONGEST_NAP = 0.005
_ENDED_WITHIN = 900.0
_FAILED = """
SELECT f.id, f.done_reason, f.losses, f.worker_losses, f.deaths FROM tenure.job_failed AS f
"""
_ENDINGS = """
SELECT a.job_id, a.outcome, a.error_type, a.error_message
FROM tenure.attempt AS a WHERE a.job_id = ANY (%(ids)s)
"""
_LIVE = "SELECT id FROM tenure.job WHERE id = ANY (%(ids)s)"
_COMPLETED = """
SELECT f.id, f.attempt, f.losses,
    (SELECT count(*) FROM tenure.attempt AS a WHERE a.job_id = f.id AND a.outcome = 'lost')
FROM tenure.job_archive AS f WHERE f.state = 'completed'
"""


def _innocent(rng: Random) -> NewJob:
    task = rng.choice((jobs.nap, jobs.doze))
    return task.bind(rng.uniform(0, _LONGEST_NAP)).job


def _pill(rng: Random, way: str) -> NewJob:
    task = rng.choice((jobs.pill, jobs.pill_on_loop))
    return task.bind(way).job


class Poison:
    """One run: who is a pill and of which kind, by the job's id."""

    def __init__(self, bed: Bed, report: Report, ways: tuple[str, ...]) -> None:
        self._bed = bed
        self._report = report
        self._ways = ways
        self._pills: dict[int, str] = {}
        self._innocents: set[int] = set()

    def enqueue(self, pills: int, innocents: int) -> None:
        """Pills anywhere among the innocents, each kind about as often."""
        rng = self._bed.rng
        kinds = [self._ways[n % len(self._ways)] for n in range(pills)] + [""] * innocents
        rng.shuffle(kinds)
        self._bed.enqueue([_pill(rng, kind) if kind else _innocent(rng) for kind in kinds])
        for job_id, kind in zip(self._bed.enqueued, kinds, strict=True):
            if kind:
                self._pills[job_id] = kind
            else:
                self._innocents.add(job_id)

    def run(self) -> None:
        """Let all end, and judge."""
        began = time.monotonic()
        with self._bed:
            ended = self._bed.all_end(_ENDED_WITHIN)
        seconds = time.monotonic() - began
        self._report.note("seconds", seconds, " s")
        self._report.note("jobs ended, per hour", round(3600 * len(self._bed.enqueued) / seconds))
        self._report.at_least("all ended in time", int(ended), 1)
        self._judge_pills()
        self._judge_innocents()

    def _judge_pills(self) -> None:
        bed, report = self._bed, self._report
        failed = {job: counts for job, *counts in bed.rows(_FAILED)}
        endings: dict[int, Counter[str]] = {job: Counter() for job in self._pills}
        for job, *end in bed.rows(_ENDINGS, ids=[*self._pills]):
            endings[job][ending_kind(*end)] += 1
        live = {job for (job,) in bed.rows(_LIVE, ids=[*self._pills])}
        begun = Counter(job for job, _ in bed.history.periods("begun"))
        found = [job for job in self._pills if failed.get(job, [])[:2] == ["poison", LOSSES]]
        report.at_least("pills failed as poison after three losses", len(found), len(self._pills))
        for way in sorted(set(self._pills.values())):
            report.note(f"  by {way}", sum(self._pills[job] == way for job in found))
        for job, ends in endings.items():
            for _ in range(ends["died"] + ends["crashed"]):
                report.fault(f"a pill's process died: {self._pills[job]}")
        # What was claimed with another pill and had not begun is given back.
        report.none(
            "pills with other endings than losses, three of their own process",
            [
                (job, self._pills[job], dict(ends))
                for job, ends in endings.items()
                if job not in live
                and (ends["died"] != LOSSES or ends.keys() - {"died", "crashed", "released"})
            ],
        )
        report.none(
            f"pills with more than {_SHARED} deaths of a shared process",
            [(job, *counts) for job, counts in failed.items() if counts[2] > _SHARED],
        )
        report.none(
            "pills whose counters differ from their endings",
            [
                (job, counts, dict(endings[job]))
                for job, (_, *counts) in failed.items()
                if job in endings and counts != _counted(endings[job])
            ],
        )
        # More often than it was lost: it ran apart when its child died of another, and was given
        # back. Less often: it had started in a child that died before its first line was written.
        for times, count in sorted(Counter(begun[job] for job in self._pills).items()):
            report.note(f"  that wrote {times} times that they began", count)
        report.none("innocents that failed", failed.keys() - self._pills.keys())

    def _judge_innocents(self) -> None:
        report = self._report
        completed = {job: counts for job, *counts in self._bed.rows(_COMPLETED)}
        innocents = {job: completed[job] for job in self._innocents & completed.keys()}
        report.at_least("innocents completed", len(innocents), len(self._innocents))
        charged = [job for job, (attempt, *_) in innocents.items() if attempt != 1]
        report.none("innocents that were charged an attempt", charged)
        blamed = [job for job, (_, losses, _) in innocents.items() if losses]
        report.none("innocents charged with a death of their own process", blamed)
        for lost, count in sorted(Counter(lost for *_, lost in innocents.values()).items()):
            report.note(f"  lost {lost} times", count)


def _counted(ends: Counter[str]) -> list[int]:
    """The counters that these endings make: losses, worker losses, deaths."""
    return [ends["died"], ends["crashed"], ends["died"] + ends["crashed"]]


def prove(*, pills: int, innocents: int, seed: int) -> Report:
    """Run it on a private server; what was logged stays in .cache."""
    limited = MemoryLimit.available()
    ways = jobs.WAYS if limited else tuple(w for w in jobs.WAYS if w != jobs.OUT_OF_MEMORY)
    report = Report({"seed": seed, "lease": LEASE, "ways": ways})
    print(f"seed {seed}, lease {LEASE:g} s, ways: {', '.join(ways)}", flush=True)
    shutil.rmtree(_DIRECTORY, ignore_errors=True)
    # As in a container: the limit is for a worker and all its processes together.
    limits = [MemoryLimit(_LIMIT) for _ in range(SHAPE.workers)] if limited else []
    places = [Place(limit.command) for limit in limits] or [Place()]
    try:
        with Cluster(15, settings=_SETTINGS) as cluster:
            databases = Databases(cluster)
            url = databases.create(databases.template("tenure", install))
            report.part("poison")
            rng = Random(seed)  # noqa: S311 - to be repeated
            bed = Bed(url, _DIRECTORY, SHAPE, rng, None, target=jobs.TARGET, places=places)
            try:
                run = Poison(bed, report, ways)
                run.enqueue(pills, innocents)
                run.run()
            finally:
                bed.close()
        if limited:
            killed = sum(limit.kills for limit in limits)
            # Fewer than losses: pills may die together, each of them charged with it.
            report.at_least("processes killed by the kernel", killed, pills // len(ways))
    finally:
        for limit in limits:
            limit.remove()
    return report


def main(argv: list[str]) -> int:
    """Run it; 0 if no bar was missed."""
    parser = argparse.ArgumentParser(prog="just prove poison", description=__doc__)
    parser.add_argument("--short", action="store_true", help="a tenth of the counts")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1_000_000))
    options = parser.parse_args(argv)
    pills, innocents = SHORT if options.short else FULL
    return tried(
        lambda: prove(pills=pills, innocents=innocents, seed=options.seed),
        _DIRECTORY.with_suffix(".json"),
        short=options.short,
    )
