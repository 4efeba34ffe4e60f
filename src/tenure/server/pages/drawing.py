"""Small pictures, as the numbers that SVG wants: attributes only, for a page has no styles."""

from collections.abc import Sequence
from dataclasses import dataclass

_STEP = 3
HEIGHT = 20


@dataclass(frozen=True, slots=True)
class Spark:
    """Bars, one per step: the path of all that ended, and of what failed of it."""

    width: int
    ended: str
    failed: str


def spark(completed: Sequence[int], failed: Sequence[int]) -> Spark:
    """The bars of a queue's pace, the highest as high as the picture."""
    totals = [done + bad for done, bad in zip(completed, failed, strict=True)]
    most = max(totals, default=0) or 1
    return Spark(len(totals) * _STEP, _bars(totals, most), _bars(failed, most))


def failures(hours: Sequence[int]) -> Spark:
    """The bars of what failed alone."""
    return spark([0] * len(hours), hours)


def _bars(values: Sequence[int], most: int) -> str:
    return "".join(
        f"M{nth * _STEP} {HEIGHT}v-{max(1, round(HEIGHT * value / most))}h{_STEP - 1}V{HEIGHT}z"
        for nth, value in enumerate(values)
        if value
    )
