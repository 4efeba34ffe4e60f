"""A timing in words, for people. What it means to the clock is in `timing`."""

from datetime import timedelta

from tenure._model.schedule import Timing

_UNITS = ((86_400, "day"), (3600, "hour"), (60, "minute"), (1, "second"))


def in_words(timing: Timing) -> str:
    """When its ticks are: `At 03:00 every day`, `Every 5 minutes`, `Once`."""
    if timing.cron is not None:
        from tenure._rules import cron  # noqa: PLC0415 - who has none need not load it

        return cron.read(timing.cron).rule.explain()
    return "Once" if timing.every is None else f"Every {_lasting(timing.every)}"


def _lasting(every: timedelta) -> str:
    """The interval in the units that it is made of: `minute`, `90 seconds`, `1 hour 30 minutes`."""
    rest = every.total_seconds()
    parts: list[tuple[float, str]] = []
    for size, word in _UNITS:
        many = rest if size == 1 else rest // size
        rest -= many * size
        if many:
            parts.append((many, word if many == 1 else f"{word}s"))
    if len(parts) == 1 and parts[0][0] == 1:
        return parts[0][1]
    return " ".join(f"{many:g} {word}" for many, word in parts)
