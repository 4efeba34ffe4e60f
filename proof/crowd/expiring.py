"""Ten thousand leases that end at the same instant, beside workers that have other things to do."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING
from uuid import UUID

from proof.crash.losses import quantile
from proof.crowd.hiring import hired, sleeper
from support.processes import wait_for
from support.store import lanes
from tenure import _wiring
from tenure._model.ids import WorkerId
from tenure._model.job import NewJob
from tenure.config import DEFAULTS

if TYPE_CHECKING:
    from datetime import datetime

    from proof.report import Report
    from support.workers import Bed

_SCALE = 0.1
_LEASE = DEFAULTS.scaled(_SCALE).lease
_QUEUE = "held"
# Their holder is gone without a trace.
_GONE = WorkerId(UUID(int=0xDEAD))
_BATCH = 500
_WORKERS, _SLOTS = 4, 20
_BESIDE_PER_SECOND = 100
_RESCUED_WITHIN = 30.0
_DRAIN_WITHIN = 30.0
# A job that comes beside it all waits no longer than this, in seconds.
_LATEST = 2.0
_LOST = "SELECT count(*) FROM tenure.attempt WHERE outcome = 'lost'"
_LAST = """
SELECT extract(epoch FROM max(a.ended_at) - %s)::float8 AS after FROM tenure.attempt AS a
WHERE a.outcome = 'lost'
"""
_NOT_ONCE = """
SELECT j.id FROM tenure.job AS j JOIN tenure.attempt AS a ON a.job_id = j.id
WHERE j.queue = %s GROUP BY j.id
HAVING count(*) <> 1 OR j.state <> 'queued' OR j.token <> max(a.token) + 1 OR j.attempt <> 0
    -- Their holder never renewed, so no handler is known to have begun.
    OR j.deaths <> 1 OR j.losses <> 0 OR j.worker_losses <> 0
"""
_WAITS = """
SELECT extract(epoch FROM a.started_at - a.due_at)::float8 AS wait
FROM tenure.attempt AS a WHERE a.queue <> %s ORDER BY 1
"""
_BESIDE_LOST = "SELECT count(*) FROM tenure.attempt WHERE queue <> %s AND outcome = 'lost'"


def run(bed: Bed, report: Report, *, short: bool) -> None:
    """A thousand in the short form."""
    leases = 1_000 if short else 10_000
    with hired(bed, workers=_WORKERS, slots=_SLOTS, scale=_SCALE):
        end = _hold(bed, leases)
        give_up_at = time.monotonic() + _RESCUED_WITHIN
        beside = 0
        while bed.count(_LOST) < leases and time.monotonic() < give_up_at:
            beside += len(bed.enqueue([sleeper.bind(0.5)] * (_BESIDE_PER_SECOND // 10)))
            time.sleep(0.1)
        wait_for(lambda: bed.ended() == beside, _DRAIN_WITHIN)
    report.at_least("leases that ended together, and were rescued", bed.count(_LOST), leases)
    [last] = bed.fetch(_LAST, end)
    report.at_most("from their end to the last rescue", last["after"], _LEASE.total_seconds(), " s")
    report.none("jobs not rescued exactly once", bed.fetch(_NOT_ONCE, _QUEUE))
    report.at_least("jobs beside them that completed", bed.ended(), beside)
    # Leases of 3 s, which a machine that stands still for as long takes from anybody.
    beside_lost = bed.count(_BESIDE_LOST, _QUEUE)
    report.at_most("leases beside them that were lost", beside_lost, 0, timed=True)
    waits = [row["wait"] for row in bed.fetch(_WAITS, _QUEUE)]
    report.at_most("from COMMIT to the claim beside them, max", quantile(waits, 1.0), _LATEST, " s")


def _hold(bed: Bed, leases: int) -> datetime:
    """Claim them all, each batch for as long as there is to one instant; that instant."""
    engine = _wiring.engine(bed.url)
    try:
        store = engine.store
        for _ in range(0, leases, _BATCH):
            engine.run(store.jobs.enqueue([NewJob("held", queue=_QUEUE)] * _BATCH))
        [row] = bed.fetch("SELECT clock_timestamp() + %s AS until", 2 * _LEASE)
        until: datetime = row["until"]
        held = 0
        while held < leases:
            [row] = bed.fetch("SELECT %s - clock_timestamp() AS left", until)
            claims = engine.run(
                store.leases.claim(lanes(_QUEUE), count=_BATCH, worker=_GONE, ttl=row["left"])
            )
            held += len(claims.jobs)
    finally:
        engine.close()
    return until
