"""When a schedule's ticks are. Pure: no clock; every instant given and answered is UTC."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from tenure._model.schedule import Timing


def check(timing: Timing) -> None:
    """Refuse a timing that names no ticks, with what to write instead (InvalidValue)."""
    raise NotImplementedError


def following(timing: Timing, after: datetime) -> datetime | None:
    """The first tick after an instant, or None if there is none to come."""
    raise NotImplementedError


def last(timing: Timing, until: datetime) -> datetime | None:
    """The last tick at or before an instant, or None."""
    raise NotImplementedError


def between(timing: Timing, after: datetime, until: datetime) -> Iterator[datetime]:
    """The ticks after one instant and up to another, in order. Lazy: a window may hold millions."""
    raise NotImplementedError


def upcoming(timing: Timing, after: datetime, count: int) -> Sequence[datetime]:
    """The next ticks after an instant, at most so many."""
    raise NotImplementedError
