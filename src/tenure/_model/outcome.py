"""How a running period ends: what the handler said, and what the store is told to do."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import NamedTuple

from tenure._model.ending import Ending
from tenure._model.ids import Json
from tenure._model.job import State
from tenure._model.lease import Lease


@dataclass(frozen=True, slots=True)
class Error:
    """An error in words that can be stored: its type, message, trace and signature."""

    type: str
    message: str
    trace: str = ""
    signature: str = ""


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
    ending: Ending
    reason: str | None = None
    result: Json = None
    error: Error | None = None
    after: timedelta | None = None
    charged: bool = True
    loss: Loss | None = None


# How nearly every running period ends: with nothing of the handler's in it.
SUCCEEDED = Succeeded()
COMPLETED = Settlement(State.COMPLETED, Ending.COMPLETED, reason=SUCCEEDED.reason)


class Ended(NamedTuple):
    """A lease whose running period is over, how, and the last of what it logged."""

    lease: Lease
    settlement: Settlement
    log: str | None = None
