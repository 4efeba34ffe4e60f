"""What every store can tell for a glance at the whole of it. A part of the port."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import timedelta

    from tenure._model.overview import Completion, Holder, Hour, LateSchedule, Pulse
    from tenure._model.stats import Count
    from tenure._store.port import Op


class GlanceStore(Protocol):
    """Figures for whoever looks at all of it at once. None goes through an unbounded set."""

    def pulse(self) -> Op[Pulse]:
        """The counts of a day and of the moment."""

    def retrying(self, queues: Sequence[str]) -> Op[Count]:
        """How many jobs of these queues wait for another attempt, of some of each."""

    def hours(self, queues: Sequence[str]) -> Op[Mapping[str, tuple[Hour, Hour]]]:
        """What ended of each queue in the last hour, and in the one before it."""

    def completions(self, *, count: int) -> Op[Sequence[Completion]]:
        """What was completed last, newest first."""

    def holders(self, *, count: int) -> Op[Sequence[Holder]]:
        """Who keeps dead rows from being removed, the oldest first."""

    def late_schedules(self, older_than: timedelta, *, count: int) -> Op[Sequence[LateSchedule]]:
        """Schedules that have been due for longer than this, the longest first."""
