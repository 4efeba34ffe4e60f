"""How attempts end, and the exceptions a handler can raise to end one."""

from collections.abc import Mapping
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
class FinalReport:
    """A cursor and items by key that a completion stores in its own transaction."""

    cursor: Json = None
    items: Mapping[str, Json] | None = None


@dataclass(frozen=True, slots=True)
class Succeeded:
    result: Json = None
    reason: str = "worker_done"
    report: FinalReport | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """The handler raised, or timed out. `after` overrides the backoff."""

    error: Error
    retryable: bool = True
    after: timedelta | None = None
    timed_out: bool = False
    reason: str = "gave_up"


@dataclass(frozen=True, slots=True)
class Snoozed:
    """The handler continues later. The attempt isn't charged."""

    pause: timedelta


@dataclass(frozen=True, slots=True)
class Released:
    """The holder returns the job and isn't charged. `after` delays it for other workers."""

    begun: bool = False
    error: Error | None = None
    after: timedelta | None = None


class Loss(StrEnum):
    """How a job is charged if something other than its handler ended the attempt (rule 8).

    `own` means that the job's own process died, which counts as a loss. `shared` means that its
    worker died, or a process it shared with other jobs, which counts as a worker loss. `begun`
    means that the holder released a job that had started, which costs nothing unless
    `on_loss="fail"`.
    """

    OWN = "own"
    SHARED = "shared"
    BEGUN = "begun"


@dataclass(frozen=True, slots=True)
class Lost:
    loss: Loss
    error: Error


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The handler, or a request, ended the job without a result."""

    reason: str = "requested"


Outcome = Succeeded | Failed | Snoozed | Released | Lost | Cancelled


@dataclass(frozen=True, slots=True)
class Settlement:
    """The job's next state. `QUEUED` without `after` keeps the job's previous time and place."""

    state: State
    ending: AttemptOutcome
    reason: str | None = None
    result: Json = None
    error: Error | None = None
    after: timedelta | None = None
    charged: bool = True
    loss: Loss | None = None
    report: FinalReport | None = None


# How nearly all attempts end: the handler returned without a result.
SUCCEEDED = Succeeded()
COMPLETED = Settlement(State.COMPLETED, AttemptOutcome.COMPLETED, reason=SUCCEEDED.reason)


class SettleRequest(NamedTuple):
    """A lease to settle, how to settle it, and the attempt's last log lines."""

    lease: Lease
    settlement: Settlement
    log: str | None = None


class ControlFlow(Exception):
    """The base of the exceptions a handler raises to end its attempt."""


class Retry(ControlFlow):
    """Retry after this long instead of using the backoff. The attempt is charged."""

    def __init__(self, reason: str = "", *, after: float | timedelta | None = None) -> None:
        super().__init__(reason)
        self.after: timedelta | None = None if after is None else duration(after, "after")


class GiveUp(ControlFlow):
    """Fail permanently, even if attempts remain. The job becomes a dead letter."""


class Cancel(ControlFlow):
    """End the job with neither a result nor a failure."""


class Snooze(ControlFlow):
    """Continue later. The attempt isn't charged."""

    def __init__(self, pause: float | timedelta) -> None:
        super().__init__(f"for {pause}")
        self.pause: timedelta = duration(pause, "a snooze")


class TargetReached(BaseException):
    """Raised by the progress report that settled the job. `except Exception` doesn't catch it."""


@dataclass(frozen=True, slots=True)
class Finished:
    """A result, the reason there's nothing more to do, and a last cursor and items."""

    reason: str
    result: Json = None
    report: FinalReport | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.reason, str):
            raise TypeError(f"reason must be a str, got {self.reason!r}")
