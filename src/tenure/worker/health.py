"""Whether a worker works, or only exists: what its probe and `/healthz` say."""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from tenure.job import boottime
from tenure.worker.offspring import Offspring

# A beat this old says that its thread does not move.
_FRESH = 10.0
# As long may no child work before the worker counts as not healthy.
_PATIENCE = 60.0
# Between two looks: a machine that was suspended says nothing about the children.
_LONGEST_GAP = 3.0


@dataclass(slots=True)
class Health:
    """How many children work, and for how long none has."""

    working: int = 0
    none_for: float = 0.0
    trouble: str = ""
    # How the last child ended that ended unasked.
    last_end: str = ""
    _looked_at: float = field(default_factory=boottime)

    @property
    def is_healthy(self) -> bool:
        """Whether a child works, or did within the last minute."""
        return self.none_for < _PATIENCE

    def look(self, children: Collection[Offspring], now: float, *, draining: bool) -> None:
        """Take in how the children are. A worker that drains is healthy until it has ended."""
        self.working = sum(works(child, now) for child in children)
        gap = min(now - self._looked_at, _LONGEST_GAP)
        self.none_for = 0.0 if self.working or draining else self.none_for + gap
        self._looked_at = now
        self.trouble = "" if self.working or draining else self._why(children, now)

    def told(self, known: dict[str, Any], *, is_watched: bool) -> tuple[int, dict[str, Any]]:
        """The answer of `/healthz`: its status and what it says, with what is known besides."""
        said = {"status": "live", **known, "working": self.working}
        if not is_watched:
            reason = "the parent has not looked at its children for too long"
            return 503, said | {"status": "stuck", "reason": reason}
        if not self.is_healthy:
            reason = f"no child has worked for {self.none_for:.0f} s: {self.trouble}"
            return 503, said | {"status": "not working", "reason": reason}
        return 200, said

    def _why(self, children: Collection[Offspring], now: float) -> str:
        for child in children:
            seconds = now - child.started_at
            if child.database is None and (seconds >= _FRESH or not self.last_end):
                return f"child {child.number} has been loading the app for {seconds:.0f} s"
            blocked = now - child.beats.loop
            if child.beats.loop and blocked >= _FRESH:
                return f"the event loop of child {child.number} has not moved for {blocked:.0f} s"
        return self.last_end or "no child runs"


def works(child: Offspring, now: float) -> bool:
    """Whether it has loaded the app, and its event loop and its service thread move. One that waits
    for the database has no service thread yet."""
    loop, service = child.beats
    return (
        child.database is not None
        and now - loop < _FRESH
        and (not service or now - service < _FRESH)
    )
