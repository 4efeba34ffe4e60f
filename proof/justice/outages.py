"""`just prove outages [--short] [--seed N] [--lease S]`: no job pays for the database's absence.

The server is away for a third of a lease, one and a half, four; the job table is locked for two
leases; a person locks rows. Jobs of all kinds run meanwhile, many of them on their only attempt.
"""

from __future__ import annotations

import time
from itertools import chain, repeat
from typing import TYPE_CHECKING

import psycopg

from proof.crash.fleet import Shape
from proof.justice.cast import Cast
from proof.justice.judge import Strike
from proof.justice.stage import prove

if TYPE_CHECKING:
    from proof.justice.harness import Bed
    from proof.justice.stage import Stage

AWAY, TABLE, ROWS = "server away", "table locked", "rows locked"
# In leases.
_AWAY = (1 / 3, 1.5, 4)
_LOCKED = 2.0
_FULL = 50
_EACH = 12
_BRIEF = 0.3
_LOCKS = {
    TABLE: "LOCK TABLE tenure.job IN ACCESS EXCLUSIVE MODE",
    ROWS: "SELECT id FROM tenure.job FOR UPDATE",
}


def _plan(stage: Stage) -> list[tuple[str, float]]:
    """What strikes, and for how many leases."""
    if stage.short:
        return [(AWAY, 1.5), (TABLE, _LOCKED)]
    away = [(AWAY, _AWAY[n % len(_AWAY)]) for n in range(_FULL)]
    plan = [*away, *repeat((TABLE, _LOCKED), _FULL), *repeat((ROWS, _LOCKED), _FULL // 2)]
    stage.rng.shuffle(plan)
    return plan


def _strike(stage: Stage, bed: Bed, kind: str, seconds: float) -> Strike:
    """Bring it about, keep it up for this long, and end it."""
    if kind == AWAY:
        at = time.time()
        stage.cluster.kill()
        time.sleep(seconds)
        stage.cluster.start()
        return Strike(kind, at, time.time())
    with psycopg.connect(bed.url) as connection:
        connection.execute(_LOCKS[kind].encode())
        at = time.time()
        time.sleep(seconds)
        connection.rollback()
    return Strike(kind, at, time.time())


def play(stage: Stage) -> None:
    """Strike again and again; each time all that runs must come to its end."""
    report, lease = stage.report, stage.lease
    plan = _plan(stage)
    bed = stage.bed("outages", Shape(workers=2, processes=1, slots=20))
    cast, strikes = Cast(bed), list[Strike]()
    try:
        with bed:
            for kind, leases in plan:
                # Long enough to be struck in the middle, wherever the fault begins.
                ids = cast.add(_EACH, (leases + 1.5) * lease, brief=_BRIEF)
                bed.wait_started(ids, 10)
                time.sleep(stage.rng.uniform(0.3, 0.6) * lease)
                strikes.append(_strike(stage, bed, kind, leases * lease))
                report.fault(kind, leases * lease)
                bed.wait_ended(4 * lease + 5)
        report.part("outages")
        report.jobs += len(cast.innocents)
        for kind in (AWAY, TABLE, ROWS):
            report.note(kind, sum(strike.kind == kind for strike in strikes))
        stage.acquit(bed, cast.innocents, strikes)
        report.none("workers that ended by themselves", bed.fleet.deserted)
        _by_kind(stage, bed, strikes)
    finally:
        bed.close()


def _by_kind(stage: Stage, bed: Bed, strikes: list[Strike]) -> None:
    """Note how the store recorded the ends, for the one who reads a failure."""
    outcomes = bed.rows("SELECT outcome, count(*) FROM tenure.attempt GROUP BY 1 ORDER BY 1")
    for outcome, count in chain(outcomes):
        stage.report.note(f"  attempts {outcome}", count)
    stage.report.note("  strikes", len(strikes))


def main(argv: list[str]) -> int:
    """Run it; 0 if no bar was missed."""
    return prove("outages", __doc__, play, argv)
