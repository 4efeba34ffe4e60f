"""How much may be claimed beyond the free slots, so that they never wait for a round trip.

What is claimed ahead is kept from other workers. So it is no more than what will have begun
within a moment, by the rate of late, and nothing where jobs are long.
"""

LONGEST_WAIT = 0.1
LARGEST = 1000
# More in one claim would hardly be cheaper, and while it is on its way nothing comes to run.
AT_ONCE = 250


def allowed(rate: float) -> int:
    """How many jobs may wait for a slot, when so many per second have begun of late."""
    return min(LARGEST, int(rate * LONGEST_WAIT))


def refill_at(allowed: int) -> int:
    """How many may still wait when more are asked for: half of them, or all but one claim."""
    return max(allowed // 2, allowed - AT_ONCE)


class Rate:
    """How many things happen per second, of late: half of it is of the last second."""

    def __init__(self) -> None:
        self._value = 0.0
        self._count = 0
        self._since = 0.0

    def note(self, count: int, now: float) -> None:
        """Note that so many happened by now."""
        self._count += count
        passed = now - self._since
        if passed >= 0.1:
            weight = 0.5 ** min(passed, 30.0)
            self._value = self._value * weight + self._count / passed * (1 - weight)
            self._count, self._since = 0, now

    def per_second(self, now: float) -> float:
        """The rate, as it has faded by now."""
        self.note(0, now)
        return self._value
