"""`just prove suspects [--short] [--seed N] [--lease S]`: many suspects at once.

A shared process dies with many async jobs in it. All must complete, each in its turn, and the
workers that run them one by one must not grow beyond two processes per core.
"""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

from proof.crash.fleet import Place, Shape
from proof.justice.cast import Cast
from proof.justice.judge import Strike
from proof.justice.stage import CORES, prove
from support.processes import family, send, wait_for

if TYPE_CHECKING:
    from proof.crash.fleet import Worker
    from proof.justice.harness import Bed
    from proof.justice.stage import Stage

_FULL = (60, 60, 2.0)
_SHORT = (16, 30, 1.5)
_IDLE_GONE_WITHIN = 90.0


def memory(pids: list[int]) -> float:
    """The memory of these processes in megabytes; what they share is counted once."""
    total = 0
    for pid in pids:
        try:
            text = Path(f"/proc/{pid}/smaps_rollup").read_text()
        except OSError:
            continue
        total += next(int(s.split()[1]) for s in text.splitlines() if s.startswith("Pss:"))
    return total / 1024


def play(stage: Stage) -> None:
    """Kill the shared process, and watch its jobs."""
    count, megabytes, seconds = _SHORT if stage.short else _FULL
    report, lease = stage.report, stage.lease
    report.part("suspects")
    beside = {"PROOF_BALLAST": str(megabytes)}
    bed = stage.bed("suspects", Shape(workers=1, processes=1, slots=count), beside=beside)
    cast = Cast(bed)
    try:
        with bed:
            [first] = bed.fleet.workers
            [child] = first.children()
            ids = cast.add(count // 4, 60.0, brief=seconds, kinds=("nap",))
            ids += cast.add(count - len(ids), 60.0, brief=seconds, kinds=("nap",), attempts=3)
            bed.wait_started(ids, 20)
            second = bed.fleet.start(Place())
            bed.note_parents()
            active = "SELECT count(*) FROM tenure.worker WHERE state = 'active'"
            wait_for(lambda: bed.count(active) >= 2, 30)
            before = max(memory(family(w.pid)) for w in (first, second))
            strike = Strike("shared process killed", time.time(), time.time(), frozenset({child}))
            send(child, signal.SIGKILL)
            report.fault("a shared process with many jobs was killed")
            most, processes = _watch(bed, (first, second), 1.3 * lease + count * seconds + 20)
            ended = bed.count("SELECT count(*) FROM tenure.job") == 0
            left = _idle(stage, (first, second))
        report.jobs += count
        report.at_least("all ended in time", int(ended), 1)
        stage.acquit(bed, cast.innocents, [strike])
        report.note("memory of a worker before", before, " MB")
        bar = 2 * before + 2 * CORES * before
        report.at_most("memory of a worker, at most", most, bar, " MB")
        report.at_most("handler processes of a worker, at most", processes, 2 * CORES)
        if not stage.short:
            report.none("handler processes left after 90 s", left)
    finally:
        bed.close()


def _watch(bed: Bed, workers: tuple[Worker, ...], within: float) -> tuple[float, int]:
    """Look at the workers until all jobs have ended; the most memory and processes of any."""
    most, processes = 0.0, 0
    until = time.monotonic() + within
    while time.monotonic() < until and bed.count("SELECT count(*) FROM tenure.job"):
        for worker in workers:
            pids = family(worker.pid)
            most = max(most, memory(pids))
            processes = max(processes, len(pids) - 1 - len(worker.children()))
        time.sleep(0.2)
    return most, processes


def _idle(stage: Stage, workers: tuple[Worker, ...]) -> list[int]:
    """The processes of handlers that are there long after the last job."""
    if stage.short:
        return []

    def left() -> list[int]:
        return [p for w in workers for p in family(w.pid) if p not in (w.pid, *w.children())]

    wait_for(lambda: not left(), _IDLE_GONE_WITHIN)
    return left()


def main(argv: list[str]) -> int:
    """Run it; 0 if no bar was missed."""
    return prove("suspects", __doc__, play, argv)
