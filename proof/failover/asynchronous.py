"""An asynchronous standby takes over without the last moments: the loss is listed, keys make it
good, workers continue, and no fence is handed out a second time."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from proof.crash.fleet import Shape
from proof.crash.losses import quantile
from proof.failover import accounts
from proof.failover.harness import Bed
from support.pair import Pair

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

    from proof.report import Report

LOSE = "asynchronous failover"
SPLIT = "old primary continues next to the new one"
_SHAPE = Shape(workers=2, processes=1, slots=4)
_FEW = Shape(workers=1, processes=1, slots=4)
_LANES, _DEADLINE = 4, 4.0
_LOAD = (1.0, 2.0)
_BEHIND = (1.0, 2.5)
_BOTH = (3.0, 5.0)
_EARLIER = """
SELECT a.job_id, a.token FROM tenure.attempt AS a
WHERE a.started_at > %(at)s AND a.token < %(least)s
"""


@dataclass
class Found:
    """What the failovers of one run did."""

    keys: list[str] = field(default_factory=list)
    effects: set[tuple[int, int]] = field(default_factory=set)
    gaps: list[float] = field(default_factory=list)
    low: list[tuple[Any, ...]] = field(default_factory=list)


def run(
    directory: Path,
    report: Report,
    rng: Random,
    failovers: int,
    bug: str | None,
    *,
    split: bool,
) -> None:
    """Fail over; with `split` the old primary continues for a while, with all its workers
    and clients, while others work on the new one."""
    found = Found()
    with Pair(synchronous=False) as pair, Bed(pair.url(), directory, bug) as bed:
        bed.hire(_SHAPE)
        bed.call("c0", lanes=_LANES, deadline=_DEADLINE)
        for number in range(failovers):
            if number:
                pair.build()
            bed.served(_LANES)
            time.sleep(rng.uniform(*_LOAD))
            pair.cut()
            time.sleep(rng.uniform(*_BEHIND))
            if split:
                _split(pair, bed, report, rng)
            else:
                at = time.monotonic()
                pair.fail_over()
                report.fault(LOSE)
                bed.served(_LANES)
                found.gaps.append(bed.book().gap(at, time.monotonic()))
            _look(bed, found)
        codes = bed.hush()
        # What was written to the book just before a failover may have been read too early.
        _list(bed, found)
        bed.all_end()
        bed.dismiss()
        report.note("failovers", failovers)
        report.none("clients that gave up", [code for code in codes if code])
        report.none("workers that ended", bed.ended)
        _tell(bed, report, found)
        accounts.settle(bed, report)


def _split(pair: Pair, bed: Bed, report: Report, rng: Random) -> None:
    """Promote beside the living primary; end that one later."""
    at = time.monotonic()
    old = pair.promote()
    try:
        url = pair.primary.url("proof")
        bed.hire(_FEW, url=url)
        bed.call("new", lanes=_LANES, deadline=_DEADLINE, url=url)
        time.sleep(rng.uniform(*_BOTH))
        old.kill()
    finally:
        old.stop()
    report.fault(SPLIT, time.monotonic() - at)
    report.fault(LOSE)


def _look(bed: Bed, found: Found) -> None:
    """List what is gone, and check that new claims have higher fences than all earlier ones."""
    [(at, timeline)] = bed.rows(
        "SELECT clock_timestamp(), left(pg_walfile_name(pg_current_wal_lsn()), 8)"
    )
    _list(bed, found)
    # Long enough for earlier leases to expire and their jobs to be claimed again.
    time.sleep(4)
    found.low += bed.rows(_EARLIER, at=at, least=int(timeline, 16) << 40)


def _list(bed: Bed, found: Found) -> None:
    """What was acknowledged and is gone; as callers would, ask for it again by its key."""
    lost = accounts.lost(bed, bed.book())
    found.keys += lost
    bed.ask_again(lost)
    bed.history.new()
    found.effects.update(accounts.effects_lost(bed))


def _tell(bed: Bed, report: Report, found: Found) -> None:
    for what, gone in (("acknowledged jobs", found.keys), ("committed effects", found.effects)):
        report.at_least(f"{what} that were gone, listed", len(gone), 1)
        figure = report.figures[f"{report.title}: {what} that were gone, listed"]
        figure["some"] = [str(one) for one in gone]
    report.none("claims after a failover with a token from before", found.low)
    if found.gaps:
        report.note("without an acknowledgement, p50", quantile(found.gaps, 0.5), " s")
        report.note("without an acknowledgement, max", quantile(found.gaps, 1), " s")
    last = dict(bed.rows("SELECT job_id, max(token) FROM ledger GROUP BY job_id"))
    report.none(
        "effects that were gone, not made again under a higher fence",
        [(job, token) for job, token in found.effects if job in last and last[job] <= token],
    )
