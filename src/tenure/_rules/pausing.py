"""Whether what an operator set keeps jobs from being claimed now."""

from datetime import datetime
from typing import Protocol


class Pausable(Protocol):
    """Whatever can be paused until a time: a queue's row, or what is told of it."""

    @property
    def paused_at(self) -> datetime | None:
        """Since when."""

    @property
    def paused_until(self) -> datetime | None:
        """Until when; None is until it is resumed."""


def is_paused(row: Pausable | None, now: datetime) -> bool:
    """Whether this row does; a pause ends by itself where it was said until when."""
    if row is None or row.paused_at is None:
        return False
    return row.paused_until is None or row.paused_until > now
