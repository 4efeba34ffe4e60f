"""`just prove blocked [--short] [--seed N] [--lease S]`: blocked loops next to busy claims.

Handlers block their event loop for three leases while short jobs are claimed all the time. No lease
may be lost, neither the blockers' nor those whose claim was under way.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

from proof.crash.fleet import Shape
from proof.justice.cast import Cast
from proof.justice.harness import Bed, job
from proof.justice.judge import Innocent
from proof.justice.ledger import BEAT
from proof.justice.stage import prove
from support.processes import wait_for
from support.proxy import Proxy

if TYPE_CHECKING:
    from proof.justice.stage import Stage

_LEASES = 3
_FULL = 50
_SHORT = 3
_DELAY = 0.02
_SHAPE = Shape(workers=2, processes=2, slots=10)
_BACKLOG = 150
SAYS = "leases are renewed"
_LOST = "SELECT job_id, token, task, renewals FROM tenure.attempt WHERE outcome = 'lost'"


def play(stage: Stage) -> None:
    """Block all loops but one, round after round."""
    report, lease = stage.report, stage.lease
    report.part("blocked loops")
    loops = _SHAPE.workers * _SHAPE.processes - 1
    rounds = -(-(_SHORT if stage.short else _FULL) // loops)
    url = stage.databases.create(stage.template)
    with Proxy(url, stage.rng) as proxy:
        # As between two machines: a claim is under way for some time.
        proxy.delay(_DELAY)
        beside = {"TENURE_DATABASE_URL": proxy.url}
        bed = Bed(url, stage.directory / "blocked", _SHAPE, lease, beside=beside)
        cast, blockers = Cast(bed), list[int]()
        try:
            with bed:
                for _ in range(rounds):
                    blockers += _block(stage, bed, cast, loops)
                bed.wait_ended(3 * lease + 5)
            _judge(stage, bed, cast, blockers)
        finally:
            bed.close()


def _block(stage: Stage, bed: Bed, cast: Cast, loops: int) -> list[int]:
    """Block this many loops, one after the other: a blocked one claims no other blocker."""
    seconds = _LEASES * stage.lease
    blockers: list[int] = []
    for _ in range(loops):
        _busy(bed, cast)
        after = stage.rng.uniform(0.3, 0.6)
        new = job("block", max_attempts=1, priority=9, after=after, seconds=seconds)
        blockers += bed.enqueue([new])
        wait_for(partial(_blocking, bed, blockers[-1]), stage.lease)
        stage.report.fault("an event loop was blocked", seconds)
    until = time.monotonic() + seconds + stage.lease
    while time.monotonic() < until and _live(bed, blockers):
        _busy(bed, cast)
        time.sleep(0.05)
    return blockers


def _judge(stage: Stage, bed: Bed, cast: Cast, blockers: list[int]) -> None:
    report = stage.report
    innocents = [*cast.innocents, *(Innocent(b, _LEASES * stage.lease) for b in blockers)]
    report.jobs += len(innocents)
    report.note("loops blocked", len(blockers))
    report.none("leases lost", bed.rows(_LOST))
    stage.acquit(bed, innocents, None)
    logs = [path.read_text(errors="replace") for path in bed.directory.glob("w*.log")]
    output = sum(log.count(SAYS) for log in logs)
    report.at_least(f"log lines that say '{SAYS}'", output, 1)
    report.none("workers that ended by themselves", bed.fleet.deserted)


def _blocking(bed: Bed, blocker: int) -> bool:
    bed.ledger.read()
    return any(mark.job == blocker and mark.kind == BEAT for mark in bed.ledger.marks[-5000:])


def _live(bed: Bed, jobs: list[int]) -> int:
    return bed.count("SELECT count(*) FROM tenure.job WHERE id = ANY (%(ids)s)", ids=jobs)


def _busy(bed: Bed, cast: Cast) -> None:
    """Keep short jobs waiting, so that some claim is always under way."""
    queued = bed.count("SELECT count(*) FROM tenure.job WHERE state = 'queued'")
    if queued < _BACKLOG:
        cast.add(_BACKLOG, 0.01, kinds=("nap", "doze"), attempts=1)


def main(argv: list[str]) -> int:
    """Run it; 0 if no bar was missed."""
    return prove("blocked", __doc__, play, argv)
