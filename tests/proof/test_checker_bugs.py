"""Stores with a bug in their protocol, in the small world of the histories: the checker finds them.

Nothing is corrupted here. Each history is what clients and handlers of such a store would see.
"""

from __future__ import annotations

import pytest

from proof.checker.check import check
from tests.proof.histories import history
from tests.proof.small_store import Row

SEEDS = range(600)


class SettlesWithoutToken(Row):
    """Any holder may settle for any other."""

    def settle(self, token: int, outcome: str, now: float, *, retry: bool = True) -> bool:
        if not self.held:
            return False
        current, self.token = self.token, token
        done = super().settle(token, outcome, now, retry=retry)
        self.token = current
        return done


class SettlesWithoutLease(Row):
    """The token is compared only with the newest, also when the period is over."""

    def settle(self, token: int, outcome: str, now: float, *, retry: bool = True) -> bool:
        self.held = self.held or self.token - 1 == token
        self.token = token if self.token - 1 == token else self.token
        return super().settle(token, outcome, now, retry=retry)


class WritesBeforeItsGuard(Row):
    """The entry stays when the lease is gone."""

    def commit(self, token: int, now: float) -> bool:
        if not (held := super().commit(token, now)):
            self.entries.append(token)
        return held


class ResetsTokens(Row):
    """A failure starts again from one."""

    def settle(self, token: int, outcome: str, now: float, *, retry: bool = True) -> bool:
        done = super().settle(token, outcome, now, retry=retry)
        if done and self.state == "queued" and outcome == "failed":
            self.token = 0
        return done


class ForgetsRaising(Row):
    """A rescue leaves the token as it is."""

    def rescue(self, now: float) -> None:
        before, ends = self.token, len(self.attempts)
        super().rescue(now)
        if len(self.attempts) > ends:
            self.token = before


class ClaimsWhatRuns(Row):
    """A claim does not check whether a worker holds it."""

    def claim(self, now: float, lease: float) -> int | None:
        if self.state == "running":
            self.state = "queued"
        return super().claim(now, lease)


class LosesEnqueues(Row):
    """Some are acknowledged before they are durable."""

    def enqueue(self) -> bool:
        return self.max_attempts == 3 or super().enqueue()


class ForgetsRequests(Row):
    """A rescue ignores a requested cancel."""

    def rescue(self, now: float) -> None:
        self.cancel_requested = False
        super().rescue(now)


class CancelsWhatHasEnded(Row):
    """A cancel ends also what has ended."""

    def cancel(self) -> str:
        if self.state == "completed":
            self.state = "cancelled"
            return "ended"
        return super().cancel()


class CountsNoLosses(Row):
    """Losses of its own process are not counted."""

    def lose(self, *, own: bool | None) -> None:
        super().lose(own=own)
        self.losses = 0


class CountsNoWorkerLosses(Row):
    """Losses of whole workers are not counted."""

    def lose(self, *, own: bool | None) -> None:
        super().lose(own=own)
        self.worker_losses = 0


class ChargesLosses(Row):
    """A lost attempt is charged, as if its handler had failed."""

    def lose(self, *, own: bool | None) -> None:
        super().lose(own=own)
        self.attempt += 1


class FailsAsPoison(Row):
    """Used up attempts are called losses."""

    def settle(self, token: int, outcome: str, now: float, *, retry: bool = True) -> bool:
        done = super().settle(token, outcome, now, retry=retry)
        self.reason = "poison" if self.reason else None
        return done


class CountsTheUnbegun(Row):
    """A claim that is not known to have begun costs a worker loss."""

    def lose(self, *, own: bool | None) -> None:
        super().lose(own=bool(own))


class NeverRescues(Row):
    """A job whose holder died stays with it."""

    def rescue(self, now: float) -> None:
        pass


class ReadsFromReplica(Row):
    """A read may show what was, not what is."""

    shown = ("absent", 0)

    def read(self) -> tuple[str, int]:
        self.shown, old = super().read(), self.shown
        return old


class FailsAtOnce(Row):
    """The first loss is the last."""

    def lose(self, *, own: bool | None) -> None:
        super().lose(own=own)
        self.state = "failed"


@pytest.mark.parametrize(
    ("bug", "invariant"),
    [
        (SettlesWithoutToken, "I2"),
        (SettlesWithoutLease, "I2"),
        (WritesBeforeItsGuard, "I4"),
        (ResetsTokens, "I8"),
        (ForgetsRaising, "I8"),
        (ClaimsWhatRuns, "I8"),
        (LosesEnqueues, "I1"),
        (ForgetsRequests, "I2"),
        (CancelsWhatHasEnded, "I2"),
        (CountsNoLosses, "I9"),
        (CountsNoWorkerLosses, "I9"),
        (ChargesLosses, "I9"),
        (FailsAsPoison, "I9"),
        (CountsTheUnbegun, "I9"),
        (NeverRescues, "I6"),
        (ReadsFromReplica, "I2"),
        (FailsAtOnce, "I9"),
    ],
)
def test_a_bug_of_the_store_is_found(bug: type[Row], invariant: str) -> None:
    found = {one.invariant for seed in SEEDS for one in check(history(seed, bug))}
    assert invariant in found
