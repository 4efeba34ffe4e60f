"""How long a worker waits before it starts the next child, by how many have crashed recently."""

from collections import deque

_MINUTE = 60.0
# As many crashes per minute and child are followed by a new child at once.
_FREE = 5
_FIRST = 0.5
_LONGEST = 30.0


class Crashes:
    """The crashes of the last minute."""

    def __init__(self, processes: int) -> None:
        self._processes = processes
        self._at: deque[float] = deque()

    def __len__(self) -> int:
        return len(self._at)

    def pause(self, now: float) -> float:
        """Take in one more crash; answers with the seconds to wait before the next child."""
        self._at.append(now)
        while self._at[0] <= now - _MINUTE:
            self._at.popleft()
        surplus = len(self._at) // self._processes - _FREE
        return min(_LONGEST, _FIRST * 2.0 ** min(surplus - 1, 10)) if surplus > 0 else 0.0
