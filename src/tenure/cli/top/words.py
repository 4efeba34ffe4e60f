"""Times and counts in a few cells."""

from datetime import timedelta

_UNITS = (("d", 86_400), ("h", 3600), ("m", 60), ("s", 1))


def brief(length: timedelta | None) -> str:
    """A length of time in its two largest units; parts of a second where it is short."""
    if length is None:
        return "-"
    seconds = max(0.0, length.total_seconds())
    if seconds < 1:
        return f"{seconds * 1000:.0f}ms"
    if seconds < 10:
        return f"{seconds:.1f}s"
    left = round(seconds)
    for place, (unit, size) in enumerate(_UNITS):
        if left >= size:
            rest = left % size // _UNITS[place + 1][1] if place + 1 < len(_UNITS) else 0
            return f"{left // size}{unit}" + (f"{rest}{_UNITS[place + 1][0]}" if rest else "")
    return "0s"


def bar(value: float, full: float, width: int) -> str:
    """A bar of this width, filled to the share."""
    filled = 0 if full <= 0 else min(width, round(width * value / full))
    if value > 0 and width:
        filled = max(1, filled)
    return "█" * filled + "·" * (width - filled)
