"""What is said between a worker elsewhere and the protocol's verbs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from tenure._model.ids import Json
from tenure._model.job import JobRow
from tenure._model.outcome import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerInfo:
    """How a worker elsewhere introduces itself."""

    name: str
    host: str = ""
    pid: int = 0
    version: str = ""
    language: str = "unknown"
    slots: int = 1


@dataclass(frozen=True, slots=True)
class AcquiredJob:
    """A job and the lease on it, as a text. `left` is what is left of the lease, counted from
    before the claim was sent, as every holder counts; `timeout` is how many seconds the attempt
    may take, if that is bounded; `notes` is what was noted with the job when it was enqueued;
    `idempotency_key` is what other systems know it by. A `suspect` lost its worker before: whoever
    holds it takes no other job."""

    job: JobRow
    lease: str
    left: timedelta
    timeout: float | None
    notes: Mapping[str, Json]
    idempotency_key: str
    suspect: bool = False


@dataclass(frozen=True, slots=True)
class AcquireResult:
    """The answer to an acquire: the session to pass back, the work, and whether the worker was
    asked to drain, in which case there is none. `waited` is how long the answer took."""

    session: str
    work: Sequence[AcquiredJob]
    draining: bool = False
    waited: timedelta = timedelta(0)


@dataclass(frozen=True, slots=True)
class SettleCommand:
    """How one lease ends, in the words of its holder, with the last of what it logged."""

    lease: str
    outcome: Outcome
    log: str | None = None
