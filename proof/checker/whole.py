"""What is checked over a whole run: that nothing came from nowhere, and when effects ended."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from proof.checker.events import Violation

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_EVERY_JOB = 0


def conserved(
    *,
    enqueued: int,
    states: Mapping[str, int],
    unknown: int = 0,
    revived: int = 0,
    discarded: int = 0,
    pruned: int = 0,
) -> list[Violation]:
    """I10: what was enqueued or revived is in some state, discarded or pruned.

    `enqueued` were acknowledged; of the `unknown` any number may have been. Each life of a job
    counts: a caller that passes `revived` counts the failure before it among the failed.
    """
    arrived = enqueued + revived
    found = sum(states.values()) + discarded + pruned
    if arrived <= found <= arrived + unknown:
        return []
    more = f" and up to {unknown:,} more" if unknown else ""
    sums = ", ".join(f"{count:,} {state}" for state, count in sorted(states.items()))
    what = (
        f"{enqueued:,} enqueued{more}, {revived:,} revived; "
        f"found {found:,}: {sums}, {discarded:,} discarded, {pruned:,} pruned"
    )
    return [Violation("I10", _EVERY_JOB, what)]


def margins(
    effects: Iterable[tuple[int, int, float]], ends: Mapping[tuple[int, int], float]
) -> tuple[float, list[Violation]]:
    """I5: how long before its lease's end the last effect was, at worst; and what came after.

    An effect is (job, token, at), on the clock of the leases' ends. Infinite without effects.
    """
    worst, found = math.inf, []
    for job, token, at in effects:
        end = ends.get((job, token))
        if end is None:
            found.append(Violation("I5", job, f"an effect by {token}, which has no lease's end"))
            continue
        worst = min(worst, end - at)
        if at >= end:
            what = f"an effect by {token}, {at - end:.3f} s after its lease's end"
            found.append(Violation("I5", job, what))
    return worst, found
