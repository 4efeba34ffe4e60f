"""The database of the small world that histories come from: one job's row, and its statements."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

LOSSES = frozenset({"died", "crashed", "stood_still"})
MAX_DEATHS = 100


@dataclass
class Row:
    """The job in the database, with what its statements do."""

    max_attempts: int
    max_losses: int
    state: str = "absent"
    token: int = 0
    held: bool = False
    expires: float = math.inf
    due: float = 0.0
    cancel_requested: bool = False
    attempt: int = 0
    losses: int = 0
    max_worker_losses: int = 10
    worker_losses: int = 0
    deaths: int = 0
    begun: bool = False  # whether the handler is known to have begun
    alone: bool = False
    timeline: int = 0
    started: float = -math.inf
    granted: float = 0.0
    reason: str | None = None
    result: int | None = None
    entries: list[int] = field(default_factory=list)
    attempts: list[tuple[int, str]] = field(default_factory=list)

    def enqueue(self) -> bool:
        """Once, however often it is asked for: the key is the job's."""
        if self.state == "absent":
            self.state = "queued"
        return True

    def claim(self, now: float, lease: float) -> int | None:
        """The token, if it could be had."""
        if self.state != "queued" or self.due > now:
            return None
        self.token = max(self.token + 1, self.timeline << 40)
        self.state, self.held, self.expires = "running", True, now + lease
        self.granted, self.begun = now, False
        self.attempt += 1
        return self.token

    def renew(self, token: int, now: float, lease: float) -> None:
        """Only while it has not run out."""
        if self.held and self.token == token and self.expires > now:
            self.expires = now + lease
            self.granted, self.begun = now, True

    def settle(self, token: int, outcome: str, now: float, *, retry: bool = True) -> bool:
        """False if the lease is not its own any more."""
        if not self.held or self.token != token:
            return False
        self.attempts.append((token, outcome))
        self.held = False
        if outcome == "completed":
            self.state = "completed"
        elif self.cancel_requested or outcome == "cancelled":
            self.state = "cancelled"
        elif outcome in {"released", "snoozed"}:
            self.state, self.attempt = "queued", self.attempt - 1
        elif outcome in LOSSES:
            self.lose(own=outcome == "died" or (outcome == "stood_still" and self.alone))
        else:
            again = retry and self.attempt < self.max_attempts
            self.state, self.due = ("queued", now + 0.2) if again else ("failed", now)
            self.reason = None if again else "attempts" if retry else "given up"
        return True

    def commit(self, token: int, now: float) -> bool:
        """The job's transaction: its entry and its completion, or neither."""
        held = self.settle(token, "completed", now)
        if held:
            self.entries.append(token)
        return held

    def read(self) -> tuple[str, int]:
        """Its state and its token."""
        return self.state, self.token

    def rescue(self, now: float) -> None:
        """Take it from a holder whose lease has run out."""
        if not self.held or self.expires > now:
            return
        excused = self.started > self.granted
        outcome = "excused" if excused else "expired" if self.begun else "unbegun"
        self.attempts.append((self.token, outcome))
        self.held, self.token = False, self.token + 1
        if self.cancel_requested:
            self.state = "cancelled"
        elif excused:
            self.state, self.attempt = "queued", self.attempt - 1
        else:
            self.lose(own=False if self.begun else None)

    def lose(self, *, own: bool | None) -> None:
        """Count a loss: of its own process, of a shared one, or only a death."""
        self.losses += own is True
        self.worker_losses += own is False
        self.deaths += 1
        poison = (
            (own is True and self.losses >= self.max_losses)
            or (own is False and self.worker_losses >= self.max_worker_losses)
            or self.deaths >= MAX_DEATHS
        )
        self.state, self.attempt = "failed" if poison else "queued", self.attempt - 1
        self.reason = "poison" if poison else None

    def cancel(self) -> str:
        """Its result."""
        if self.state == "queued":
            self.state = "cancelled"
            return "ended"
        if self.state == "running":
            self.cancel_requested = True
            return "requested"
        return "nothing"

    def revoke(self) -> None:
        """Take it from its holder, and end it."""
        if self.held:
            self.attempts.append((self.token, "revoked"))
            self.held, self.token, self.state = False, self.token + 1, "cancelled"
