"""Durations, counts and exit codes in sentences."""

import signal
from datetime import timedelta

from tenure._model.stats import Count

_UNITS = (("d", 86_400), ("h", 3600), ("min", 60), ("s", 1))


def span(length: timedelta) -> str:
    """A length of time in its largest unit, and in the next where that says more: 40 min,
    2 h 5 min, 3 d."""
    left = max(0, round(length.total_seconds()))
    for place, (unit, seconds) in enumerate(_UNITS):
        if left >= seconds:
            said = f"{left // seconds} {unit}"
            if place + 1 < len(_UNITS) and left // seconds < 10:
                smaller, size = _UNITS[place + 1]
                rest = left % seconds // size
                said += f" {rest} {smaller}" if rest else ""
            return said
    return "0 s"


def counted(count: int | Count, one: str, many: str) -> str:
    """A count with its noun."""
    exact = count if isinstance(count, int) else count.value
    shown = f"{count:,}" if isinstance(count, int) else str(count)
    return f"{shown} {one if exact == 1 else many}"


def describe(code: int) -> str:
    """The signal's name for a negative code, else the exit code."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
