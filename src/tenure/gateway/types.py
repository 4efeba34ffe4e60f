"""Worker protocol types."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from tenure._model.ids import Json
from tenure._model.job import JobRow
from tenure._model.outcome import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerInfo:
    name: str
    host: str = ""
    pid: int = 0
    version: str = ""
    language: str = "unknown"
    slots: int = 1


@dataclass(frozen=True, slots=True)
class AcquiredJob:
    """A job, and its lease as a string.

    `left` is how long the lease still lasts, measured from before the claim was sent.
    `notes` contains the fields that middleware stored. A worker that holds a `suspect` gets no
    other jobs.
    """

    job: JobRow
    lease: str
    left: timedelta
    timeout: float | None
    notes: Mapping[str, Json]
    idempotency_key: str
    suspect: bool = False


@dataclass(frozen=True, slots=True)
class AcquireResult:
    """The result of an acquire: the session to send back, and the jobs (none if `draining`)."""

    session: str
    work: Sequence[AcquiredJob]
    draining: bool = False
    waited: timedelta = timedelta(0)


@dataclass(frozen=True, slots=True)
class SettleCommand:
    """How the holder ends one lease, along with the last lines it logged."""

    lease: str
    outcome: Outcome
    log: str | None = None
