"""Durations, counts and exit codes as text."""

import signal
from collections.abc import Sequence
from datetime import timedelta

from tenure._model.stats import Count

_UNITS = (("d", 86_400), ("h", 3600), ("min", 60), ("s", 1))
_WORDS = {"d": "day", "h": "hour", "min": "minute", "s": "second"}


def units(length: timedelta) -> list[tuple[float, str]]:
    """Split a duration into units, from the largest down to seconds."""
    rest, parts = max(0.0, length.total_seconds()), list[tuple[float, str]]()
    for unit, size in _UNITS:
        many = rest if unit == "s" else rest // size
        rest -= many * size
        if many or parts or unit == "s":
            parts.append((round(many, 6), unit))
    return parts


def span(length: timedelta) -> str:
    """Format a duration in its largest one or two units, such as 40 min, 2 h 5 min or 3 d."""
    parts = units(timedelta(seconds=round(length.total_seconds())))
    return _joined(parts[: 1 if parts[0][0] >= 10 else 2])


def measured(length: timedelta) -> str:
    """Format a measured duration: 4 ms, 2.3 s, 1 min 15 s."""
    seconds = max(0.0, length.total_seconds())
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 10:
        return f"{seconds:.1f} s"
    return _joined(units(timedelta(seconds=round(seconds)))[:2])


def _joined(parts: Sequence[tuple[float, str]]) -> str:
    return " ".join(f"{many:.0f} {unit}" for many, unit in parts if many) or "0 s"


def compact(length: timedelta) -> str:
    """Format a duration the way options and selectors take it: 90 minutes is 1h30m."""
    parts = [(f"{many:.6f}".rstrip("0").rstrip("."), unit[0]) for many, unit in units(length)]
    return "".join(f"{many}{unit}" for many, unit in parts if many != "0") or "0s"


def interval(length: timedelta) -> str:
    """Format a duration after "every": minute, 90 seconds, 1 hour 30 minutes."""
    parts = [(many, _WORDS[unit]) for many, unit in units(length) if many]
    if len(parts) == 1 and parts[0][0] == 1:
        return parts[0][1]
    return " ".join(f"{many:g} {word if many == 1 else word + 's'}" for many, word in parts)


def counted(count: int | Count, one: str, many: str) -> str:
    exact = count if isinstance(count, int) else count.value
    shown = f"{count:,}" if isinstance(count, int) else str(count)
    return f"{shown} {one if exact == 1 else many}"


def describe(code: int) -> str:
    """Return the signal's name for a negative code, otherwise the exit code."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
