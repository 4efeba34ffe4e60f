"""How a running period ends, and what a handler can raise to say so."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import NamedTuple

from tenure._model.attempt import AttemptOutcome
from tenure._model.ids import Json, duration
from tenure._model.job import State
from tenure._model.lease import Lease
from tenure.errors import Error


@dataclass(frozen=True, slots=True)
class Succeeded:
    """The handler returned."""

    result: Json = None
    reason: str = "worker_done"


@dataclass(frozen=True, slots=True)
class Failed:
    """The handler raised, or ran out of time. `after` overrides the backoff."""

    error: Error
    retryable: bool = True
    after: timedelta | None = None
    timed_out: bool = False
    reason: str = "gave_up"


@dataclass(frozen=True, slots=True)
class Snoozed:
    """The handler wants to go on later; the attempt is given back."""

    pause: timedelta


@dataclass(frozen=True, slots=True)
class Released:
    """The holder gives the job back as it was, attempt included.

    `error` says why a handler that had begun was stopped. `after` is for one that could not begin
    here: it keeps another from trying at once.
    """

    begun: bool = False
    error: Error | None = None
    after: timedelta | None = None


class Loss(StrEnum):
    """What the end of an attempt costs that its handler did not end (rule 8).

    `own`: the job's own process died: a loss. `shared`: anything else died: a worker loss.
    `begun`: its holder gave it back: nothing, but `on_loss="fail"` ends the job.
    """

    OWN = "own"
    SHARED = "shared"
    BEGUN = "begun"


@dataclass(frozen=True, slots=True)
class Lost:
    """The process that ran the handler died; `error` says how."""

    loss: Loss
    error: Error


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The handler, or a request, ended the job for good without a result."""

    reason: str = "requested"


Outcome = Succeeded | Failed | Snoozed | Released | Lost | Cancelled


@dataclass(frozen=True, slots=True)
class Settlement:
    """What the store is told to do with a job. The store adds `after` to its own clock.

    `QUEUED` without `after` gives the job back with its old time and its old place.
    """

    state: State
    ending: AttemptOutcome
    reason: str | None = None
    result: Json = None
    error: Error | None = None
    after: timedelta | None = None
    charged: bool = True
    loss: Loss | None = None


# How nearly every running period ends: with nothing of the handler's in it.
SUCCEEDED = Succeeded()
COMPLETED = Settlement(State.COMPLETED, AttemptOutcome.COMPLETED, reason=SUCCEEDED.reason)


class SettleRequest(NamedTuple):
    """A lease whose running period is over, how, and the last of what it logged."""

    lease: Lease
    settlement: Settlement
    log: str | None = None


class ControlFlow(Exception):
    """The base of what a handler says by raising it."""


class Retry(ControlFlow):
    """Try again, after this long instead of the backoff. The attempt stays charged."""

    def __init__(self, reason: str = "", *, after: float | timedelta | None = None) -> None:
        super().__init__(reason)
        self.after: timedelta | None = None if after is None else duration(after, "after")


class GiveUp(ControlFlow):
    """Fail for good, whatever attempts are left; the job is among the dead letters."""


class Cancel(ControlFlow):
    """End the job without a result, and without a failure."""


class Snooze(ControlFlow):
    """Go on later. The attempt is given back."""

    def __init__(self, pause: float | timedelta) -> None:
        super().__init__(f"for {pause}")
        self.pause: timedelta = duration(pause, "a snooze")


class TargetReached(BaseException):
    """Raised by the report that reached the job's target: it has settled the job, and the
    handler is over. No Exception, so that `except Exception` lets it pass."""


@dataclass(frozen=True, slots=True)
class Finished:
    """A result with the reason why there is no more to do."""

    reason: str
    result: Json = None

    def __post_init__(self) -> None:
        if not isinstance(self.reason, str):
            raise TypeError(f"a reason is text, not {self.reason!r}")
