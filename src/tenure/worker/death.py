"""How a child ended: what its parent saw, for those who settle what it held and say why."""

import math
import signal
from dataclasses import dataclass

# Why a parent kills a child, in words.
KILLED = {
    "lease": "it held a lease past its deadline",
    "grace": "it did not drain within the grace",
    "frozen": "its service thread stood still",
    "loading": "it did not load the app in time (--load-timeout)",
    "reload": "a later reload took its place",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Death:
    """How a child ended, as its parent saw it."""

    # Exit code; negative: the signal's number. None if it never started.
    code: int | None
    # What the child said when it left by itself: "drained", "overran", "doomed".
    left: str | None = None
    # Why the parent killed it: "lease", "grace", "frozen", "loading", "memory".
    killed: str | None = None
    # Seconds between the service thread's last beat and the end.
    service_beat_age: float = math.inf
    # Boottime of the end as the parent saw it.
    ended_at: float = 0.0
    # The kernel's out-of-memory killer, where a cgroup or the signal tells.
    out_of_memory: bool = False

    @property
    def how(self) -> str:
        """The end in words."""
        if self.killed is not None:
            return f"killed: {KILLED.get(self.killed, self.killed)}"
        if self.out_of_memory:
            return "out of memory, SIGKILL"
        code = self.code or 0
        return signal.Signals(-code).name if code < 0 else f"exit code {code}"
