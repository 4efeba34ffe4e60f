"""Whether a child's service thread still moves, as its parent sees it on the board."""

_LONGEST = 30.0
# A third of a lease of 3 s is 1 s: a busy machine can keep an innocent thread waiting that
# long, and the deadlines on the board guard such leases anyway.
_SHORTEST = 3.0
# Between two looks of the parent: a parent that was itself not scheduled, or a machine that was
# suspended, says nothing about the child.
_LONGEST_GAP = 0.5


def patience(shortest_lease: float) -> float:
    """How long a service thread may be silent while the shortest lease that is held is this."""
    return min(_LONGEST, max(shortest_lease / 3, _SHORTEST))


class Pulse:
    """How long the parent has looked at a beat that did not change."""

    def __init__(self) -> None:
        self._beat = 0.0
        self._looked_at = 0.0
        self.silent_for: float = 0.0

    def look(self, beat: float, now: float) -> float:
        """Take in one look; answers with the seconds of silence. None count before the first beat:
        until then the limit on loading holds."""
        if beat != self._beat or not beat:
            self._beat, self.silent_for = beat, 0.0
        else:
            self.silent_for += min(now - self._looked_at, _LONGEST_GAP)
        self._looked_at = now
        return self.silent_for
