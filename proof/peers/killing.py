"""The first test: a worker is killed in the middle, whole, and another starts at once."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Any

from proof.peers.harness import NotTried, TooLate

if TYPE_CHECKING:
    from proof.peers.harness import Bed

JOBS = 20
SECONDS = 1.0
_STARTED = 12  # With ten at a time: the second round has begun.
_BEGIN_WITHIN = 120.0
_INTO = 0.2
_AFTER = 10.0  # For what is run once more though it is done.
GAVE_UP = {"failed", "aborted", "FAILURE", "exception", "dead"}


def run(bed: Bed, watch: float) -> dict[str, Any]:
    """Kill, watch, and report the result of each job."""
    bed.call("install")
    bed.call("enqueue", str(JOBS))
    with bed.worker("first", SECONDS) as first:
        if not bed.until(lambda: bed.count("start") >= _STARTED, _BEGIN_WITHIN):
            raise NotTried(f"only {bed.count('start')} jobs had begun after {_BEGIN_WITHIN:g} s")
        bed.pause(_INTO)
        first.freeze()
        in_hand = bed.count("start") - bed.count("end")
        killed_at = time.time()
        first.kill()
    if not in_hand:
        raise TooLate("no job was running when the worker was killed")
    with bed.worker("second", SECONDS):
        if bed.until(lambda: len(_ended(bed)) == JOBS, watch):
            bed.pause(_AFTER)
        known = bed.store()
        ended = _ended(bed)  # After the store, which may take a while to answer.
    undone = [known.get(number, ("",))[0] for number in range(JOBS) if number not in ended]
    starts = Counter(line.number for line in bed.lines() if line.what == "start")
    return {
        "in_hand": in_hand,
        "done": len(ended),
        "stuck": sum(bool(word) and word not in GAVE_UP for word in undone),
        "given_up": sum(word in GAVE_UP for word in undone),
        "lost": undone.count(""),
        "words": sorted({word for word in undone if word}),
        "started_again": sum(times > 1 for times in starts.values()),
        "ended_twice": sum(len(at) > 1 for at in ended.values()),
        "seconds": round(max(min(at) for at in ended.values()) - killed_at, 1)
        if len(ended) == JOBS
        else None,
        "watched": watch,
    }


def _ended(bed: Bed) -> dict[int, list[float]]:
    """When each job that came to its end did so."""
    ended: dict[int, list[float]] = {}
    for line in bed.lines():
        if line.what == "end":
            ended.setdefault(line.number, []).append(line.at)
    return ended
