"""`just prove http_stops [--short] [--seed N] [--lease S]`: SIGTERM to workers over HTTP.

Their handlers take longer than a lease. Each must keep its lease until it has ended: no job may run
twice side by side.
"""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING

from proof.crash.fleet import Shape
from proof.justice.cast import Cast
from proof.justice.ledger import END, FAILED, START
from proof.justice.over_http import HttpBed
from proof.justice.stage import prove

if TYPE_CHECKING:
    from proof.justice.stage import Stage

_FULL = 100
_SHORT = 2
_SHAPE = Shape(workers=3, processes=1, slots=3)
# Fewer than there are slots: what is lost runs elsewhere at once.
_BUSY = 5
# A handler takes this many leases, and a worker is stopped after this many jobs.
_LONG = 2.5
_EVERY = 0.7
_LOST = "SELECT job_id, token FROM tenure.attempt WHERE outcome = 'lost'"


def play(stage: Stage) -> None:
    """Stop one worker after another while all of them are busy."""
    report, lease = stage.report, stage.lease
    report.part("stops over HTTP")
    wanted = _SHORT if stage.short else _FULL
    url = stage.databases.create(stage.template)
    bed = HttpBed(url, stage.directory / "http", _SHAPE, lease)
    cast = Cast(bed)
    stops = 0
    try:
        with bed:
            give_up_at = time.monotonic() + 20 + 6 * lease * wanted
            next_at = time.monotonic()
            leaving: set[int] = set()
            while stops < wanted and time.monotonic() < give_up_at:
                live = bed.count("SELECT count(*) FROM tenure.job")
                room = max(0, _BUSY - live)
                for attempts, count in ((3, room - room // 3), (None, room // 3)):
                    kinds = ("nap", "doze")
                    cast.add(count, _LONG * lease, brief=0.3, kinds=kinds, attempts=attempts)
                bed.supervise()
                time.sleep(0.1)
                if time.monotonic() < next_at:
                    continue
                busy = _busy(bed)
                ready = [w for w in bed.fleet.workers if w.pid in busy and w.pid not in leaving]
                if not ready:
                    continue
                worker = stage.rng.choice(ready)
                worker.dismiss(signal.SIGTERM)
                leaving.add(worker.pid)
                report.fault("SIGTERM to a worker over HTTP")
                stops += 1
                next_at = time.monotonic() + _EVERY * lease
            bed.wait_ended((_LONG + 2) * lease + 5)
        report.jobs += len(cast.innocents)
        report.at_least("stops of workers with handlers at work", stops, wanted)
        stage.acquit(bed, cast.innocents, [])
        report.none("leases lost", bed.rows(_LOST))
        report.none("workers that ended by themselves", bed.fleet.deserted)
    finally:
        bed.close()


def _busy(bed: HttpBed) -> set[int]:
    """The workers in which a handler is at work."""
    bed.ledger.read()
    marks = bed.ledger.marks
    over = {mark.period for mark in marks if mark.kind in (END, FAILED)}
    return {mark.pid for mark in marks if mark.kind == START and mark.period not in over}


def main(argv: list[str]) -> int:
    """Run it; 0 if no bar was missed."""
    return prove("http_stops", __doc__, play, argv)
