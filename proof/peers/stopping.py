"""The second test: a worker is stopped, whole, until another has its job, and then continues."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from proof.peers.harness import NotTried, TooLate

if TYPE_CHECKING:
    from proof.peers.harness import Bed

_FIRST = 6.0  # Over by the time it continues, so that it completes at once.
_SECOND = 90.0  # It is let go when the store has been looked at.
_LOOKS = 5
_BEGIN_WITHIN = 120.0
_COMPLETE_WITHIN = 15.0
_GONE = ("gone", None)
# Where a queue keeps nothing of what is done, gone is done.
FINISHED = {"succeeded", "successful", "completed", "complete", "SUCCESS", "finished", "gone"}


def run(bed: Bed, watch: float) -> dict[str, Any]:
    """Stop, wait until another has the job, resume, and report what the store accepts."""
    bed.call("install")
    with ExitStack() as workers:
        if bed.way.watched:
            workers.enter_context(bed.worker("watch", _FIRST))
            bed.pause(5)
        bed.call("enqueue", "1")
        first = workers.enter_context(bed.worker("first", _FIRST))
        if not bed.until(lambda: bed.count("start") == 1, _BEGIN_WITHIN):
            raise NotTried(f"the job had not begun after {_BEGIN_WITHIN:g} s")
        bed.pause(1)
        first.freeze()
        stopped_at = time.time()
        if bed.count("end"):
            raise TooLate("the job was over before its worker was stopped")
        held = _look(bed)
        workers.enter_context(bed.worker("second", _SECOND))
        taken = bed.until(lambda: bed.count("start", "second") > 0, watch)
        found = {"watched": watch, "held": held[0], "taken_after": None}
        if not taken:
            return found | {"held": _look(bed)[0], "outcome": "not given to another"}
        first.thaw()
        [began, *_] = [line.at for line in bed.lines() if line.worker == "second"]
        ended = bed.until(lambda: bed.count("end", "first") > 0, _COMPLETE_WITHIN)
        seen = _during(bed, held)
        if bed.count("end", "second") or bed.count("cut", "second"):
            raise TooLate("the second worker's run was over before the store was looked at")
        bed.let_go()
        bed.until(lambda: bed.count("end", "second") > 0, _COMPLETE_WITHIN)
        bed.pause(3)
        last = _look(bed)
    answer = outcome(held[0], [word for word, _ in seen])
    return found | {
        "taken_after": round(began - stopped_at, 1),
        "first_ended": ended,
        "seen": seen,
        "last": last,
        "starts": bed.count("start"),
        "ends": bed.count("end"),
        "outcome": answer,
        "overwritten": answer == "accepted" and last[1] != seen[-1][1],
    }


def outcome(held: str, words: list[str]) -> str:
    """What the store made of the first worker's completion, by what it said while the second
    worker was still running."""
    changed = [word for word in words if word != held]
    if any(word in FINISHED for word in changed):
        return "accepted"
    return f"changed to {changed[0]}" if changed else "refused"


def _during(bed: Bed, held: tuple[str, Any]) -> list[tuple[str, Any]]:
    """What the store says, look by look, while the second worker runs the job."""
    seen = [held]
    for _ in range(_LOOKS):
        bed.pause(1)
        look = _look(bed)
        if look != seen[-1]:
            seen.append(look)
        if look[0] in FINISHED:
            break
    return seen


def _look(bed: Bed) -> tuple[str, Any]:
    word, result = bed.store().get(0, _GONE)
    return word, result
